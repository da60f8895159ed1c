"""One life of a worker process: a fresh interpreter, what it says, and how it ended."""

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

from hybrid_runner.supervisor.supervised import HELD_BACK, VARIABLE, ChildOrders
from hybrid_runner.telemetry.metrics.values import Labels, Value, unpacked

_LONGEST_LINE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """How to start one more of us."""

    words: Sequence[str]
    folder: Path
    embedded: str | None = None
    """The folder of the embedded Postgres, if that is what is used."""


class Process:
    """A child from its start to its end."""

    def __init__(
        self, popen: subprocess.Popen[bytes], ours: socket.socket, changed: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.pid = popen.pid
        self.said: dict[str, Any] | None = None
        self.figures: dict[str, Mapping[Labels, Value]] = {}
        """What it said last of each instrument."""
        self.has_worked = False
        self.refusal: str | None = None
        self._popen = popen
        self._changed = changed
        self._born = self._heard = time.monotonic()
        self._code: asyncio.Future[int] = loop.create_future()
        self._reading = loop.create_task(self._read(ours))

    @classmethod
    def start(cls, command: Command, worker_id: str | None, changed: Callable[[], None]) -> Process:
        """Start it in a session of its own: Ctrl-C in our terminal reaches it only through us.
        OSError if the system refuses.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            birth = ChildOrders(theirs.fileno(), worker_id, command.embedded)
            before = signal.pthread_sigmask(
                signal.SIG_BLOCK, HELD_BACK
            )  # inherited until the child can handle them
            try:
                popen = subprocess.Popen(
                    command.words,
                    cwd=command.folder,
                    env=os.environ | {VARIABLE: birth.as_text()},
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return cls(popen, ours, changed)

    @property
    def lived(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._born

    @property
    def silence(self) -> float:
        """Seconds since its last word, or its start."""
        return time.monotonic() - self._heard

    def send(self, number: signal.Signals) -> None:
        """Pass a signal on; nothing happens if it has ended."""
        self._popen.send_signal(number)

    def reap(self) -> None:
        """Take its exit code if it has ended."""
        if (code := self._popen.poll()) is not None and not self._code.done():
            self._code.set_result(code)

    async def ended(self) -> int:
        """Its exit code, once its last words were read."""
        code = await asyncio.shield(self._code)
        with contextlib.suppress(
            TimeoutError
        ):  # a process that a handler forked may hold the other end
            async with asyncio.timeout(1):
                await self._reading
        return code

    async def _read(self, ours: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_LONGEST_LINE)
        except (
            OSError
        ):  # to the child it is as if we had gone: it stops, and the next one is started
            ours.close()
            return
        try:
            with contextlib.suppress(OSError, ValueError):
                while line := await reader.readline():
                    self._hear(orjson.loads(line))
        finally:
            writer.close()

    def _hear(self, word: dict[str, Any]) -> None:
        self._heard = time.monotonic()
        self.refusal = word.get("refused")
        self.said = word.get("health", self.said)
        self.figures.update(unpacked(word.get("figures", {})))
        if self.said is not None and self.said["phase"] != "starting" and not self.has_worked:
            self.has_worked = True
            self._changed()
