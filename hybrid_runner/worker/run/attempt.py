"""One running attempt: what the executor, its deadline and whoever stops it know of it."""

from __future__ import annotations

import asyncio
import logging
import math
from datetime import timedelta
from typing import Any

from hybrid_runner.handlers.job import Job
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.notes import Notes
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Left, Stopped
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.telemetry.logs.job_fields import job_fields
from hybrid_runner.telemetry.tracing.spans import RunSpan
from hybrid_runner.worker.queue.slots import Slots

log = logging.getLogger("hybrid_runner.worker")

REMINDERS = GrowingPause(timedelta(seconds=5), timedelta(seconds=60), 2)
"""Between two cancellations of a handler that goes on."""


class Attempt:
    """One running attempt. `stop` is written by whoever stops it, `expired` by its deadline, all
    else by the executor.
    """

    __slots__ = (
        "_reminded",
        "_reminder",
        "claim",
        "due_at",
        "ended",
        "entered",
        "expired",
        "job",
        "kind",
        "left",
        "limited",
        "notes",
        "slots",
        "span",
        "stop",
        "task",
        "waits",
    )

    def __init__(
        self,
        claim: Claim,
        kind: JobKind[object, object],
        slots: Slots,
        job: Job | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.claim = claim
        self.kind = kind
        self.job = job
        self.notes = notes
        self.left: Left | None = None
        """What a process says that the attempt leaves."""
        self.slots = slots
        self.stop: Stopped | None = None
        self.entered = self.limited = self.expired = self.ended = False
        self.waits = False
        """Whether it waits for a thread or a process, and has not begun."""
        self.task: asyncio.Task[None] | None = None
        self.span: RunSpan | None = None
        self.due_at = math.inf
        """When its time-out ends it, by the monotonic clock; not set while it waits for a
        process.
        """
        self._reminder: asyncio.TimerHandle | None = None
        self._reminded = 0

    def expire(self) -> None:
        self.expired = True
        self.wind_down()

    def wind_down(self) -> None:
        """Tell the handler to stop, and tell it again if it goes on."""
        if self.job is not None:
            self.job.cancel_requested = True  # a thread that goes on can see it
        if self.entered and self.task is not None:
            self.task.cancel()
            if self._reminder is None:
                self._remind_later()

    def end(self) -> None:
        """It has ended: nobody is told any more."""
        self.ended = True
        if self._reminder is not None:
            self._reminder.cancel()

    def _remind_later(self) -> None:
        self._reminded += 1
        pause = REMINDERS.after(self._reminded).total_seconds()
        self._reminder = asyncio.get_running_loop().call_later(pause, self._remind)

    def _remind(self) -> None:
        if not self.entered or self.task is None:
            return
        if self._reminded == 1:
            log.warning(
                "its handler was cancelled and goes on: it is cancelled again, and again",
                extra=job_fields(self.claim, "job.stop_ignored"),
            )
        self.task.cancel()
        self._remind_later()


def uncancel(task: asyncio.Task[Any] | None) -> None:
    """Take back what asked it to stop: what stopped it is known."""
    while task is not None and task.cancelling():
        task.uncancel()
