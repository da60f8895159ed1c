"""One place in the fleet: a worker process, and after its death the next one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.supervisor.process import Command, Process
from hybrid_runner.supervisor.reports import View
from hybrid_runner.supervisor.restarting import deaths_in_a_row, describe_end, is_refusal, pause_after

log = logging.getLogger("hybrid_runner.supervisor")


class Member:
    """Keeps one process alive until a stop was asked for."""

    def __init__(self, number: int, worker_id: str | None, *, worked: asyncio.Event, changed: Callable[[], None]) -> None:
        self.number = number
        self.process: Process | None = None
        self.has_worked = False
        self._worker_id = worker_id
        self._fleet_worked = worked
        self._changed = changed
        self._stopping = asyncio.Event()
        self._restarts = 0
        self._deaths = 0
        self._trouble: str | None = None

    async def keep(self, command: Command) -> None:
        """One life after the other; RunnerError when the first start of the fleet shows that there is no sense in it."""
        while not self._stopping.is_set():
            process = self.process = Process.start(command, self._worker_id, self._on_working)
            try:
                code = await process.ended()
            finally:
                self.process = None
            if self._stopping.is_set():
                return
            self._refuse_if_hopeless(process, code)
            await self._pause(process, code)
            self._restarts += 1

    def stop(self, number: signal.Signals) -> None:
        """No more lives; the signal goes to this one."""
        self._stopping.set()
        self.send(number)

    def send(self, number: signal.Signals) -> None:
        """A signal for the process, if one lives."""
        if self.process is not None:
            self.process.send(number)

    def reap(self) -> None:
        """Look whether the process has ended."""
        if self.process is not None:
            self.process.reap()

    def view(self) -> View:
        """How it looks now."""
        process = self.process
        if process is None:
            return View(self.number, None, self._restarts, None, 0.0, self._trouble)
        return View(self.number, process.pid, self._restarts, process.said, process.silence)

    def _on_working(self) -> None:
        self.has_worked = True
        self._changed()

    def _refuse_if_hopeless(self, process: Process, code: int) -> None:
        if is_refusal(code, has_worked=process.has_worked, fleet_has_worked=self._fleet_worked.is_set()):
            raise RunnerError(process.refusal or f"worker process {self.number} {describe_end(code)} before it worked")

    async def _pause(self, process: Process, code: int) -> None:
        self._deaths = deaths_in_a_row(self._deaths, timedelta(seconds=process.lived))
        pause = pause_after(self._deaths).total_seconds()
        why = f" ({process.refusal})" if process.refusal else ""
        self._trouble = f"{describe_end(code)}{why}"
        log.warning("worker process %d (pid %d) %s; starting it again in %.0f s", self.number, process.pid, self._trouble, pause)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)
