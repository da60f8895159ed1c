"""One running attempt: what the executor, its deadline and whoever stops it know of it."""

from __future__ import annotations

import asyncio
import math

from hybrid_runner.handlers.job import Job
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import (
    Stopped,
)
from hybrid_runner.telemetry.tracing.spans import RunSpan
from hybrid_runner.worker.queue.slots import Slots


class Attempt:
    """One running attempt. `stop` is written by whoever stops it, `expired` by its deadline, all
    else by the executor.
    """

    __slots__ = (
        "claim",
        "due_at",
        "ended",
        "entered",
        "expired",
        "job",
        "kind",
        "limited",
        "slots",
        "span",
        "stop",
        "task",
        "waits",
    )

    def __init__(
        self, claim: Claim, kind: JobKind[object, object], job: Job | None, slots: Slots
    ) -> None:
        self.claim = claim
        self.kind = kind
        self.job = job
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

    def expire(self) -> None:
        self.expired = True
        self.wind_down()

    def wind_down(self) -> None:
        """Tell the handler to stop; called again if it ignored that the first time."""
        if self.job is not None:
            self.job.cancel_requested = True  # a thread that goes on can see it
        if self.entered and self.task is not None:
            self.task.cancel()
