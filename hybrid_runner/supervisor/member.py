"""One place in the fleet: keeps one worker process running, with a new one after each death."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.supervisor.process import Command, Process
from hybrid_runner.supervisor.reports import LONGEST_SILENCE, ProcessView
from hybrid_runner.supervisor.restarts import (
    deaths_in_a_row,
    describe_end,
    is_refusal,
    pause_after,
)
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.instruments import PROCESS_RESTARTS
from hybrid_runner.telemetry.metrics.values import MetricValues, lasting, merged

log = logging.getLogger("hybrid_runner.supervisor")


class Member:
    """Keeps one process running until a stop is asked for."""

    def __init__(
        self,
        number: int,
        worker_id: str | None,
        *,
        fleet_started: asyncio.Event,
        on_started: Callable[[], None],
    ) -> None:
        self.number = number
        self.process: Process | None = None
        self.has_worked = False
        self.last_code = 0
        """The exit code of its process after a stop was asked for; 0 too if none ran then."""
        self._worker_id = worker_id
        self._fleet_started = fleet_started
        self._on_started = on_started
        self._stopping = asyncio.Event()
        self._starts = 0
        self._deaths = 0
        self._trouble: str | None = None
        self._counted: tuple[MetricValues, Process | None] = ({}, None)
        """The values of earlier processes, and the present process. Replaced as one value, since
        the thread of the pages reads it.
        """

    async def keep(self, command: Command) -> None:
        """Run one process after the other until a stop is asked for; RunnerError if the first start
        of the fleet fails in a way that a restart would not change.
        """
        while not self._stopping.is_set():
            try:
                process = self.process = Process.start(command, self._worker_id, self._on_working)
            except OSError as error:
                await self._on_no_start(error)
                continue
            self._starts += 1
            earlier, _ = self._counted
            self._counted = (earlier, process)
            try:
                code = await process.ended()
            finally:
                self.process = None
                self._counted = (merged([earlier, lasting(process.metric_values)]), None)
            if self._stopping.is_set():
                self._on_last_end(process, code)
            else:
                await self._on_death(process, code)

    def stop(self, number: signal.Signals) -> None:
        """Start no more processes, and send the signal to the present one."""
        self._stopping.set()
        if self.process is not None:
            self.process.send(number)

    def reap(self) -> None:
        """Take the exit code of the process if it has ended."""
        if self.process is not None:
            self.process.reap()

    def view(self) -> ProcessView:
        process = self.process
        if process is None:
            return ProcessView(
                self.number, None, max(0, self._starts - 1), None, 0.0, self._trouble
            )
        return ProcessView(
            self.number, process.pid, self._starts - 1, process.health, process.silence
        )

    def metric_values(self) -> MetricValues:
        """What all its processes counted, and the gauges of the present one unless it is silent.
        From any thread.
        """
        earlier, process = self._counted
        now: MetricValues = {} if process is None else process.metric_values.copy()
        if process is not None and process.silence >= LONGEST_SILENCE:
            now = lasting(now)
        restarts: MetricValues = {PROCESS_RESTARTS.name: {(): max(0, self._starts - 1)}}
        return merged([earlier, {**now, **restarts}])

    def _on_working(self) -> None:
        self.has_worked = True
        self._on_started()

    # --- ends

    async def _on_no_start(self, error: OSError) -> None:
        """The system started no process: the folder was replaced, there are too many processes, or
        there is no memory for another.
        """
        why = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        if not self.has_worked and not self._fleet_started.is_set():
            raise RunnerError(f"worker process {self.number} cannot be started: {why}")
        await self._pause(
            f"worker process {self.number}", f"cannot be started: {why}", timedelta(0)
        )

    async def _on_death(self, process: Process, code: int) -> None:
        if is_refusal(
            code, has_worked=process.has_worked, fleet_has_worked=self._fleet_started.is_set()
        ):
            raise RunnerError(
                process.refusal
                or f"worker process {self.number} {describe_end(code)} before it worked"
            )
        await self._pause(
            self._named(process), _end_of(process, code), timedelta(seconds=process.age)
        )

    def _on_last_end(self, process: Process, code: int) -> None:
        if code != 0 and not is_refusal(
            code, has_worked=process.has_worked, fleet_has_worked=False
        ):
            self.last_code = code
            log.warning(
                "%s %s during the stop: other workers rescue its jobs",
                self._named(process),
                _end_of(process, code),
                extra=log_event("fleet.process_ended"),
            )

    async def _pause(self, name: str, trouble: str, lived: timedelta) -> None:
        self._deaths = deaths_in_a_row(self._deaths, lived)
        pause = pause_after(self._deaths).total_seconds()
        self._trouble = trouble
        log.warning(
            "%s %s; starting it again in %.0f s",
            name,
            trouble,
            pause,
            extra=log_event("fleet.process_restarted"),
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()

    def _named(self, process: Process) -> str:
        return f"worker process {self.number} (pid {process.pid})"


def _end_of(process: Process, code: int) -> str:
    return describe_end(code) + (f" ({process.refusal})" if process.refusal else "")
