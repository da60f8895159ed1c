"""A worker process's side of its connection to the parent: its orders, its reports, and its end
when the parent has gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

import orjson

from hybrid_runner.embedded import EmbeddedPostgres, use_embedded
from hybrid_runner.resilience import AdaptiveScheduler
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.values import packed
from hybrid_runner.web.pages.metric_values import metric_values_of
from hybrid_runner.web.pages.reports import Body, health_of
from hybrid_runner.worker.report.status import WorkerStatus

log = logging.getLogger("hybrid_runner.supervisor")

VARIABLE = "HYBRID_RUNNER_SUPERVISED"
SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that ask for an orderly end, however many come: a stop of a whole control group reaches a
child directly and through its parent.
"""
AT_ONCE = signal.SIGQUIT
"""Ends a process without waiting for its jobs; the parent sends it from its own second signal on.
"""
BLOCKED_SIGNALS = (*SIGNALS, AT_ONCE)
"""Blocked in a new process until it can handle them."""
STOP_PATIENCE = timedelta(seconds=30)
"""Time beyond its grace after which a process is killed."""

_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class ChildOrders:
    """What a parent tells its child, in an environment variable that the child removes at once."""

    socket: int
    worker_id: str | None
    embedded: str | None
    """The folder of the embedded Postgres that all share."""

    def as_text(self) -> str:
        return orjson.dumps(asdict(self)).decode()


class Supervised:
    def __init__(self, orders: ChildOrders) -> None:
        self.worker_id = orders.worker_id
        self._embedded = orders.embedded
        self._socket = socket.socket(fileno=orders.socket)
        self._socket.set_inheritable(False)  # not for the processes of handlers
        self._worker_status: Callable[[], WorkerStatus] | None = None
        self._loops = AdaptiveScheduler()
        self._sent_lines: dict[str, bytes] = {}

    @classmethod
    def find(cls, environment: MutableMapping[str, str]) -> Supervised | None:
        """The connection to the parent, if this process has one that supervises it."""
        text = environment.pop(VARIABLE, None)
        return None if text is None else cls(ChildOrders(**orjson.loads(text)))

    def accept_signals(self) -> None:
        """Unblock signals. Nothing runs yet, so any one ends the process."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: os._exit(0))
        signal.signal(AT_ONCE, _end_at_once)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)

    def stop_on_signals(self) -> asyncio.Event:
        """From here on there is a worker to stop: returns an event that the first signal sets."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in SIGNALS:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
        # Again: the application may have replaced it while it was imported.
        signal.signal(AT_ONCE, _end_at_once)
        return stop

    def share_postgres(self) -> EmbeddedPostgres | None:
        """Use the embedded Postgres too, so that it outlives a killed parent until our jobs are
        released.
        """
        return None if self._embedded is None else use_embedded(Path(self._embedded))

    def refuse(self, why: str) -> None:
        """Report why this process cannot start: the parent logs it once for all processes. The
        caller then ends the process.
        """
        _ignore_signals()
        self._socket.settimeout(1)
        with contextlib.suppress(OSError):
            self._socket.sendall(_line({"refused": why}))

    def show(self, worker_status: Callable[[], WorkerStatus]) -> None:
        """Report this worker from now on: it has started."""
        self._worker_status = worker_status
        self._loops.trigger("reports")

    @asynccontextmanager
    async def reporting(self, grace: timedelta) -> AsyncIterator[None]:
        """Report every second; stop in order when the parent has gone, and end after the grace and
        STOP_PATIENCE at the latest.
        """
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        # A thread: it also ends a process whose event loop no longer turns.
        threading.Thread(
            target=self._watch, args=(loop, grace + STOP_PATIENCE), name="parent watch", daemon=True
        ).start()
        # It goes on if a handler cancels a report, as one does that cancels all tasks.
        self._loops.schedule("reports", self._report, _PAUSE, at_once=True)
        try:
            yield
        finally:
            _ignore_signals()
            await self._loops.close(grace=0)

    async def _report(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):  # nobody reads any more
            await loop.sock_sendall(self._socket, _line({"health": self._health()}))
            for line in self._changed_metrics():
                await loop.sock_sendall(self._socket, line)

    def _status(self) -> WorkerStatus | None:
        return None if self._worker_status is None else self._worker_status()

    def _health(self) -> Body:
        return health_of(self._status())

    def _changed_metrics(self) -> list[bytes]:
        """A line for each instrument whose values have changed since they were last reported."""
        plain = packed(metric_values_of(self._status()))
        lines = {name: _line({"metrics": {name: series}}) for name, series in plain.items()}
        changed = [line for name, line in lines.items() if self._sent_lines.get(name) != line]
        # An instrument that is no longer shown is reported once as empty.
        changed += [
            _line({"metrics": {name: []}}) for name in self._sent_lines.keys() - lines.keys()
        ]
        self._sent_lines = lines
        return changed

    def _watch(self, loop: asyncio.AbstractEventLoop, patience: timedelta) -> None:
        select.select([self._socket], [], [])  # the parent sends nothing: readable means closed
        with contextlib.suppress(RuntimeError):  # the loop has ended, and so does the process
            loop.call_soon_threadsafe(self._stop)
        time.sleep(patience.total_seconds())
        os._exit(1)

    def _stop(self) -> None:
        """Stop as after a signal."""
        status = self._status()
        if status is None or not status.stopping:
            log.warning(
                "the supervising process has gone: stopping",
                extra=log_event("fleet.supervisor_gone"),
            )
            os.kill(os.getpid(), signal.SIGTERM)


def _ignore_signals() -> None:
    """Nothing runs any more: a late signal must not change the exit code."""
    for number in BLOCKED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _end_at_once(*_: object) -> None:
    os._exit(128 + AT_ONCE)


def _line(report: dict[str, object]) -> bytes:
    return orjson.dumps(report) + b"\n"
