"""One worker process, as its parent sees it: a fresh interpreter, its reports, how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from hybrid_runner.supervisor.supervised import BLOCKED_SIGNALS, VARIABLE, ChildOrders
from hybrid_runner.telemetry.metrics.values import Labels, Value, unpacked

_LONGEST_LINE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a worker process."""

    words: Sequence[str]
    folder: Path
    embedded: str | None = None
    """The folder of the embedded Postgres, if one is used."""


class Process:
    """A child from its start to its end."""

    def __init__(
        self, popen: subprocess.Popen[bytes], ours: socket.socket, on_started: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.pid = popen.pid
        self.health: dict[str, Any] | None = None
        """Its last /health; None: it has reported nothing yet."""
        self.metric_values: dict[str, Mapping[Labels, Value]] = {}
        """The last reported values of each instrument."""
        self.has_worked = False
        self.refusal: str | None = None
        self._popen = popen
        self._on_started = on_started
        self._started_at = self._reported_at = time.monotonic()
        self._code: asyncio.Future[int] = loop.create_future()
        self._reading = loop.create_task(self._read(ours))

    @classmethod
    def start(
        cls, command: Command, worker_id: str | None, on_started: Callable[[], None]
    ) -> Process:
        """Start a process in a session of its own, so that Ctrl-C reaches it only through us.
        OSError if the system refuses.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            orders = ChildOrders(theirs.fileno(), worker_id, command.embedded)
            # Blocked signals are inherited: until the child can handle them.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)
            try:
                popen = subprocess.Popen(
                    command.words,
                    cwd=command.folder,
                    env=os.environ | {VARIABLE: orders.as_text()},
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return cls(popen, ours, on_started)

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started_at

    @property
    def silence(self) -> float:
        """Seconds since its last report, or its start."""
        return time.monotonic() - self._reported_at

    def send(self, number: signal.Signals) -> None:
        """Send a signal; does nothing if the process has ended."""
        self._popen.send_signal(number)

    def reap(self) -> None:
        """Take the exit code if the process has ended."""
        if (code := self._popen.poll()) is not None and not self._code.done():
            self._code.set_result(code)

    async def ended(self) -> int:
        """Wait for the end and the last reports; returns the exit code."""
        code = await asyncio.shield(self._code)
        # A process that a handler forked may hold the other end of the socket: do not wait long.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._reading
        return code

    async def _read(self, ours: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_LONGEST_LINE)
        except OSError:  # the child sees the end of the stream: it stops, and another is started
            ours.close()
            return
        try:
            with contextlib.suppress(OSError, ValueError):
                while line := await reader.readline():
                    self._on_report(orjson.loads(line))
        finally:
            writer.close()

    def _on_report(self, report: dict[str, Any]) -> None:
        self._reported_at = time.monotonic()
        self.refusal = report.get("refused")
        self.health = report.get("health", self.health)
        self.metric_values.update(unpacked(report.get("metrics", {})))
        if self.health is not None and self.health["phase"] != "starting" and not self.has_worked:
            self.has_worked = True
            self._on_started()
