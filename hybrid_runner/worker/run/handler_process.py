"""A worker's side of one process for handlers."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
from multiprocessing.context import SpawnProcess
from typing import Any, assert_never

from hybrid_runner import secrets
from hybrid_runner.errors import RunnerError, StaleClaim
from hybrid_runner.handlers.job import JobPort
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import NOTHING_LEFT, Left, Outcome, Raised
from hybrid_runner.telemetry.logs.setup import configured_logs
from hybrid_runner.telemetry.tracing.publish_span import current_traceparent
from hybrid_runner.worker.run.process_group import kill_group
from hybrid_runner.worker.run.process_main import GROUP_SIGNALS, serve
from hybrid_runner.worker.run.process_messages import (
    HEADER,
    LARGEST,
    BadMessage,
    Ended,
    Message,
    Progress,
    Ready,
    Save,
    framed,
    read,
)

_spawn = multiprocessing.get_context("spawn")

START = 60.0
"""Seconds that a process may take until it can run a handler."""
_AT_ONCE = 64 * 1024
"""Bytes that are read before other tasks have a turn."""
_CLOSING = 1.0
"""Seconds that a process has to end once it has closed its connection."""
_LOOK = 0.1
"""Seconds between two looks whether it has ended, where the kernel does not say so."""


class ProcessDied(Exception):
    """A process for handlers ended, or did not start."""


class _Gone(Exception):
    """Nothing more can come from the process."""


class HandlerProcess:
    """Runs one attempt at a time. What it has started is killed when it ends."""

    def __init__(self, module: str) -> None:
        self._pipe, its_pipe = socket.socketpair()
        its_lifeline, self._lifeline = _spawn.Pipe(duplex=False)
        self._pipe.setblocking(False)
        self._received = bytearray()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self.ended = asyncio.Event()
        self._process: SpawnProcess = _spawn.Process(
            target=serve,
            args=(its_pipe, its_lifeline, configured_logs(), secrets.known(), module, os.getpid()),
            daemon=True,
        )
        # Inherited: the process does nothing about them as soon as it can.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            self._lifeline.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            its_pipe.close()
            its_lifeline.close()
        self._watch()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None  # noqa: S101  # it was started
        return pid

    def is_usable(self) -> bool:
        """Whether it lives and is connected."""
        if self.ended.is_set() or not self._process.is_alive():
            return False
        try:
            return self._pipe.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    async def ready(self) -> None:
        """Wait until it has started and imported its module, at most `START` seconds."""
        try:
            async with asyncio.timeout(START):
                await self._receive()
        except TimeoutError:
            raise ProcessDied(
                f"a process for handlers was not ready after {START:.0f} s: what does its module"
                " do?"
            ) from None
        except (_Gone, BadMessage):
            raise ProcessDied(
                f"a process for handlers {await self._how_it_ended()} as it started"
            ) from None

    async def run(
        self, kind: JobKind[Any, Any], claim: Claim, port: JobPort
    ) -> tuple[Outcome, Left]:
        """Run one attempt; its outcome, and what it leaves beside it. If it is cancelled, the
        process is of no use any more.
        """
        function = kind.function
        request = (
            *(function.__module__, function.__qualname__, claim, current_traceparent()),
            port.callbacks(claim.id),
        )
        try:
            with contextlib.suppress(ConnectionError):  # read on: it may say how it ended
                await self._loop.sock_sendall(self._pipe, framed(pickle.dumps(request)))
            while True:
                match message := await self._receive():
                    # A thread that outlived its attempt may still speak of that.
                    case Progress() | Save() | Ended() if (message.job, message.claim) != (
                        claim.id,
                        claim.number,
                    ):
                        continue
                    case Progress():
                        port.report(claim, message.report)
                    case Save():
                        await self._save(claim, message.data, port)
                    case Ended():
                        claim.completed_by_handler = message.completed_by_handler
                        claim.uses = message.uses
                        return message.outcome, message.left
                    case Ready():
                        continue
                    case _:
                        assert_never(message)
        except _Gone:
            reason = f"the process of this attempt {await self._how_it_ended()}"
        except BadMessage as error:
            self.end()
            reason = f"the process of this attempt sent what is no message of ours: {error}"
        return Raised("ProcessDied", reason), NOTHING_LEFT

    async def _save(self, claim: Claim, data: str, port: JobPort) -> None:
        """Save its memory, and tell it what became of that: it waits."""
        try:
            await port.save(claim, data)
            answer = None
        except RunnerError as error:
            answer = str(error), isinstance(error, StaleClaim)
        with contextlib.suppress(ConnectionError):
            await self._loop.sock_sendall(self._pipe, framed(pickle.dumps(answer)))

    def end(self) -> None:
        """Kill it, and what it has started."""
        if not self.ended.is_set():
            kill_group(self.pid)
        self._pipe.close()
        self._lifeline.close()

    # --- what it sends

    async def _receive(self) -> Message:
        while (content := self._next_content()) is None:
            self._news.clear()
            if self._read_more():
                await asyncio.sleep(0)  # one that never stops must not keep others from their turns
                continue
            if self._is_closed or self.ended.is_set():
                raise _Gone
            self._loop.add_reader(self._pipe.fileno(), self._news.set)
            try:
                await self._news.wait()
            finally:
                self._loop.remove_reader(self._pipe.fileno())
        return read(content)

    def _next_content(self) -> bytes | None:
        received = self._received
        if len(received) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(received)
        if length > LARGEST:
            raise BadMessage(f"{length:,} bytes, the most is {LARGEST:,}")
        end = HEADER.size + length
        if len(received) < end:
            return None
        content = bytes(received[HEADER.size : end])
        del received[:end]
        return content

    def _read_more(self) -> bool:
        """Read what has come; whether anything has."""
        try:
            more = self._pipe.recv(_AT_ONCE)
        except BlockingIOError:
            return False
        except OSError:
            more = b""
        self._received += more
        self._is_closed = not more
        return bool(more)

    async def _how_it_ended(self) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self.ended.wait()
        if self.ended.is_set():
            return f"ended with exit code {self._process.exitcode}"
        self.end()
        return "closed its connection to the worker and went on: it was killed"

    # --- its end

    def _watch(self) -> None:
        """Not by its pipe, nor by what multiprocessing waits for: a fork of it holds both open."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            self._look_at_it()
            return
        self._loop.add_reader(descriptor, self._on_end, descriptor)

    def _look_at_it(self) -> None:
        if self._process.is_alive():
            self._loop.call_later(_LOOK, self._look_at_it)
        else:
            self._on_end(None)

    def _on_end(self, descriptor: int | None) -> None:
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        kill_group(self.pid, is_led=False)
        self._process.join(0)
        self.ended.set()
        self._news.set()
        with contextlib.suppress(OSError):
            self._pipe.shutdown(socket.SHUT_WR)  # whoever writes to it is told
