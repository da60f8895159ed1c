"""The parent of several worker processes: one command, one port, one exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.supervisor.member import Member
from hybrid_runner.supervisor.process import Command
from hybrid_runner.supervisor.reports import fleet_health, fleet_ready
from hybrid_runner.supervisor.restarts import as_shell
from hybrid_runner.supervisor.supervised import AT_ONCE, SIGNALS, STOP_PATIENCE
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.values import MetricValues, merged
from hybrid_runner.web.pages.metric_values import metric_values_of
from hybrid_runner.web.pages.reports import Body

log = logging.getLogger("hybrid_runner.supervisor")

_END_AT_ONCE = timedelta(seconds=5)


class Fleet:
    """Starts the processes, restarts those that die, and ends when all have ended."""

    def __init__(self, size: int, worker_id: str | None, grace: timedelta) -> None:
        self._grace = grace
        self._signals: list[signal.Signals] = []
        self._all_started = asyncio.Event()
        self._members = [
            Member(
                number,
                worker_id and f"{worker_id}-{number}",
                fleet_started=self._all_started,
                on_started=self._on_member_started,
            )
            for number in range(1, size + 1)
        ]

    async def run(self, command: Command, started: Callable[[], None]) -> int:
        """Start all processes, call `started` once all of them work, and wait until a signal has
        ended them; returns the exit code.
        """
        self._take_signals()
        announcing = asyncio.create_task(self._announce(started))
        keeping = [asyncio.create_task(member.keep(command)) for member in self._members]
        try:
            await asyncio.wait(keeping, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            announcing.cancel()
            await self._stop_others(keeping)
        failures = [failure for task in keeping if (failure := task.exception()) is not None]
        if failures:
            raise failures[0]
        return self._exit_code()

    # --- the pages

    def health(self) -> Body:
        return fleet_health(
            [member.view() for member in self._members], stopping=bool(self._signals)
        )

    def ready(self) -> Body:
        return fleet_ready(
            [member.view() for member in self._members], stopping=bool(self._signals)
        )

    def metric_values(self) -> MetricValues:
        """The values of all processes, dead ones included: counters never go down."""
        return merged(
            [metric_values_of(None), *(member.metric_values() for member in self._members)]
        )

    # --- start

    async def _announce(self, started: Callable[[], None]) -> None:
        await self._all_started.wait()
        started()
        log.info("%d worker processes work", len(self._members), extra=log_event("fleet.started"))

    def _on_member_started(self) -> None:
        if all(member.has_worked for member in self._members):
            self._all_started.set()

    # --- signals

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._on_death)
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        """The first signal asks for an orderly end, each later one for an end at once."""
        self._signals.append(number)
        if len(self._signals) == 1:
            log.info(
                "%s: %d worker processes stop",
                number.name,
                len(self._members),
                extra=log_event("fleet.stopping"),
            )
            self._end_within(self._grace + STOP_PATIENCE)
        else:
            log.warning(
                "one more %s: ending at once", number.name, extra=log_event("fleet.aborted")
            )
            self._end_within(_END_AT_ONCE)
        for member in self._members:
            member.stop(number if len(self._signals) == 1 else AT_ONCE)

    def _end_within(self, patience: timedelta) -> None:
        asyncio.get_running_loop().call_later(patience.total_seconds(), self._kill)

    def _kill(self) -> None:
        for process in (member.process for member in self._members if member.process is not None):
            log.warning(
                "worker process %d does not end: it is killed",
                process.pid,
                extra=log_event("fleet.process_killed"),
            )
            process.send(signal.SIGKILL)

    def _on_death(self) -> None:
        for member in self._members:
            member.reap()
        if os.getpid() == 1:
            self._reap_orphans()

    def _reap_orphans(self) -> None:
        """Reap the orphans of our children, which process 1 inherits."""
        ours = {member.process.pid for member in self._members if member.process is not None}
        try:
            while (
                ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            ) and ended.si_pid not in ours:
                os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:  # there are none
            return

    async def _stop_others(self, keeping: list[asyncio.Task[None]]) -> None:
        """Stop all processes if one could not be started; running jobs are released."""
        if not self._signals and any(not task.done() for task in keeping):
            for member in self._members:
                member.stop(signal.SIGTERM)
            self._end_within(self._grace + STOP_PATIENCE)
        await asyncio.wait(keeping)

    def _exit_code(self) -> int:
        """0 if one signal has ended all in order; else that of the second signal, or the highest
        exit code of the processes.
        """
        if len(self._signals) > 1:
            return 128 + self._signals[-1]
        return max(as_shell(member.last_code) for member in self._members)
