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
from hybrid_runner.supervisor.reports import LONGEST_SILENCE, View
from hybrid_runner.supervisor.restarting import deaths_in_a_row, describe_end, is_refusal, pause_after
from hybrid_runner.telemetry.figures import Figures, lasting, merged
from hybrid_runner.telemetry.instruments import PROCESS_RESTARTS
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.supervisor")


class Member:
    """Keeps one process alive until a stop was asked for."""

    def __init__(self, number: int, worker_id: str | None, *, worked: asyncio.Event, changed: Callable[[], None]) -> None:
        self.number = number
        self.process: Process | None = None
        self.has_worked = False
        self.last_code = 0
        """How its process ended once a stop was asked for; 0 as well if none ran then."""
        self._worker_id = worker_id
        self._fleet_worked = worked
        self._changed = changed
        self._stopping = asyncio.Event()
        self._lives = 0
        self._deaths = 0
        self._trouble: str | None = None
        self._counted: tuple[Figures, Process | None] = ({}, None)
        """What earlier lives counted, and the one that counts on. Replaced as one: the pages' thread reads it."""

    async def keep(self, command: Command) -> None:
        """One life after the other; RunnerError when the first start of the fleet shows that there is no sense in it."""
        while not self._stopping.is_set():
            try:
                process = self.process = Process.start(command, self._worker_id, self._on_working)
            except OSError as error:
                await self._on_no_start(error)
                continue
            self._lives += 1
            earlier, _ = self._counted
            self._counted = (earlier, process)
            try:
                code = await process.ended()
            finally:
                self.process = None
                self._counted = (merged([earlier, lasting(process.figures)]), None)
            if self._stopping.is_set():
                self._on_last_end(process, code)
            else:
                await self._on_death(process, code)

    def stop(self, number: signal.Signals) -> None:
        """No more lives; the signal goes to this one."""
        self._stopping.set()
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
            return View(self.number, None, max(0, self._lives - 1), None, 0.0, self._trouble)
        return View(self.number, process.pid, self._lives - 1, process.said, process.silence)

    def figures(self) -> Figures:
        """What all its lives counted, and how the last one stands; of one that is silent nobody knows that. From any thread."""
        earlier, process = self._counted
        said: Figures = {} if process is None else process.figures.copy()
        if process is not None and process.silence >= LONGEST_SILENCE:
            said = lasting(said)
        restarts: Figures = {PROCESS_RESTARTS.name: {(): max(0, self._lives - 1)}}
        return merged([earlier, {**said, **restarts}])

    def _on_working(self) -> None:
        self.has_worked = True
        self._changed()

    # --- ends

    async def _on_no_start(self, error: OSError) -> None:
        """The system made no process: the folder was replaced, or there are too many, or no memory for one more."""
        why = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        if not self.has_worked and not self._fleet_worked.is_set():
            raise RunnerError(f"worker process {self.number} cannot be started: {why}")
        await self._pause(f"worker process {self.number}", f"cannot be started: {why}", timedelta(0))

    async def _on_death(self, process: Process, code: int) -> None:
        if is_refusal(code, has_worked=process.has_worked, fleet_has_worked=self._fleet_worked.is_set()):
            raise RunnerError(process.refusal or f"worker process {self.number} {describe_end(code)} before it worked")
        await self._pause(self._named(process), _end_of(process, code), timedelta(seconds=process.lived))

    def _on_last_end(self, process: Process, code: int) -> None:
        if code != 0 and not is_refusal(code, has_worked=process.has_worked, fleet_has_worked=False):
            self.last_code = code
            log.warning(
                "%s %s during the stop: others bring back what it left",
                self._named(process),
                _end_of(process, code),
                extra=log_event("fleet.process_ended"),
            )

    async def _pause(self, name: str, trouble: str, lived: timedelta) -> None:
        self._deaths = deaths_in_a_row(self._deaths, lived)
        pause = pause_after(self._deaths).total_seconds()
        self._trouble = trouble
        log.warning("%s %s; starting it again in %.0f s", name, trouble, pause, extra=log_event("fleet.process_restarted"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()

    def _named(self, process: Process) -> str:
        return f"worker process {self.number} (pid {process.pid})"


def _end_of(process: Process, code: int) -> str:
    return describe_end(code) + (f" ({process.refusal})" if process.refusal else "")
