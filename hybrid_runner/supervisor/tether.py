"""A worker process's tie to its parent: what it was told at its birth, what it says, and its end when the parent has gone."""

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
from hybrid_runner.telemetry.figures import packed
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.web.figures import figures_of
from hybrid_runner.web.reports import Body, health_of
from hybrid_runner.worker.status import WorkerStatus

log = logging.getLogger("hybrid_runner.supervisor")

VARIABLE = "HYBRID_RUNNER_SUPERVISED"
SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Ask for one end in order, however many come: a stop of a whole control group reaches a child directly and through its parent."""
AT_ONCE = signal.SIGQUIT
"""Ends a process with what it runs; its parent sends it from its own second signal on."""
HELD_BACK = (*SIGNALS, AT_ONCE)
"""What a process is started with blocked, so that none meets a half-built interpreter."""
FAREWELL = timedelta(seconds=30)
"""What a process may take beyond its grace, until it is ended without asking."""

_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Birth:
    """What a parent tells its child, in a variable that the child takes out of its environment at once."""

    socket: int
    worker_id: str | None
    embedded: str | None
    """The folder of the embedded Postgres that all share."""

    def as_text(self) -> str:
        """For the environment."""
        return orjson.dumps(asdict(self)).decode()


class Tether:
    """The child's end."""

    def __init__(self, birth: Birth) -> None:
        self.worker_id = birth.worker_id
        self._embedded = birth.embedded
        self._socket = socket.socket(fileno=birth.socket)
        self._socket.set_inheritable(False)  # not for the processes of handlers
        self._look: Callable[[], WorkerStatus] | None = None
        self._news = asyncio.Event()
        self._told_figures: dict[str, bytes] = {}

    @classmethod
    def find(cls, environment: MutableMapping[str, str]) -> Tether | None:
        """The tie of this process, if it has a parent that supervises it."""
        text = environment.pop(VARIABLE, None)
        return None if text is None else cls(Birth(**orjson.loads(text)))

    def accept_signals(self) -> None:
        """No longer hold them back; nothing runs yet, and so any one is the end."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: os._exit(0))
        signal.signal(AT_ONCE, _end_at_once)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)

    def stop_on_signals(self) -> asyncio.Event:
        """From here on there is something to end in order: the event is set by the first, and the others change nothing."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in SIGNALS:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
        signal.signal(AT_ONCE, _end_at_once)  # the application may have taken it while it was imported
        return stop

    def share_postgres(self) -> EmbeddedPostgres | None:
        """A share of our own: the server outlives a killed parent until our jobs are put back."""
        return None if self._embedded is None else use_embedded(Path(self._embedded))

    def refuse(self, why: str) -> None:
        """Tell the parent why this process cannot start, as it says so once for all; then only the end is left."""
        _ignore_signals()
        self._socket.settimeout(1)
        with contextlib.suppress(OSError):
            self._socket.sendall(_line({"refused": why}))

    def show(self, look: Callable[[], WorkerStatus]) -> None:
        """The worker has started: these are its snapshots."""
        self._look = look
        self._news.set()

    @asynccontextmanager
    async def held(self, grace: timedelta) -> AsyncIterator[None]:
        """Report every second; stop in order when the parent has gone, and end at the latest after the grace and some more."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        # A thread: it also ends a process whose event loop no longer turns.
        threading.Thread(target=self._watch, args=(loop, grace + FAREWELL), name="tether", daemon=True).start()
        reporting = loop.create_task(self._report())
        try:
            yield
        finally:
            _ignore_signals()
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)

    async def _report(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._news.clear()
            try:
                await loop.sock_sendall(self._socket, _line({"health": self._health()}))
                for line in self._news_of_figures():
                    await loop.sock_sendall(self._socket, line)
            except OSError:  # nobody reads any more
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._news.wait()

    def _health(self) -> Body:
        return health_of(None if self._look is None else self._look())

    def _news_of_figures(self) -> list[bytes]:
        """A line for each instrument that has moved since it was last told."""
        plain = packed(figures_of(None if self._look is None else self._look()))
        lines = {name: _line({"figures": {name: series}}) for name, series in plain.items()}
        news = [line for name, line in lines.items() if self._told_figures.get(name) != line]
        # What is no longer shown is told once as empty.
        news += [_line({"figures": {name: []}}) for name in self._told_figures.keys() - lines.keys()]
        self._told_figures = lines
        return news

    def _watch(self, loop: asyncio.AbstractEventLoop, patience: timedelta) -> None:
        select.select([self._socket], [], [])  # nothing is ever sent to us: readable is the end
        with contextlib.suppress(RuntimeError):  # the loop has ended, and so does the process
            loop.call_soon_threadsafe(self._stop)
        time.sleep(patience.total_seconds())
        os._exit(1)

    def _stop(self) -> None:
        """As if a signal had come."""
        if self._look is None or not self._look().stopping:
            log.warning("the supervising process has gone: stopping", extra=log_event("fleet.supervisor_gone"))
            os.kill(os.getpid(), signal.SIGTERM)


def _ignore_signals() -> None:
    """Nothing runs any more: a signal that comes late must not make it look like an end by force."""
    for number in HELD_BACK:
        signal.signal(number, signal.SIG_IGN)


def _end_at_once(*_: object) -> None:
    os._exit(128 + AT_ONCE)


def _line(word: dict[str, object]) -> bytes:
    return orjson.dumps(word) + b"\n"
