"""The main function of a process for handlers."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import multiprocessing
import os
import pickle
import signal
import socket
import threading
from collections.abc import Awaitable
from multiprocessing.connection import Connection
from typing import Any

from hybrid_runner.handlers.job import Job
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Refused, outcome_of_exception
from hybrid_runner.telemetry.logs.setup import Logs, configure_logs
from hybrid_runner.telemetry.tracing.current import current_claim
from hybrid_runner.telemetry.tracing.publish_span import context_with_trace
from hybrid_runner.worker.run.process_group import end_with, lead_group
from hybrid_runner.worker.run.process_messages import (
    HEADER,
    Ended,
    FromHandler,
    Message,
    Progress,
    Ready,
    refused_to_send,
    written,
)
from hybrid_runner.worker.run.progress import stored_elsewhere
from hybrid_runner.worker.signals import forget_signals_in_forks

GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""They reach a whole control group; the worker decides what they mean."""


def serve(
    pipe: socket.socket,
    lifeline: Connection[Any, Any],
    logs: Logs | None,
    module: str,
    worker: int,
) -> None:
    """Say that it is ready, then run one attempt after another and send their outcomes, until the
    worker is gone.
    """
    lead_group(lifeline.fileno(), worker)
    if logs is not None:
        configure_logs(logs.level, logs.layout, logs.dsns)
    _heed_no_signals()
    threading.Thread(target=end_with, args=(lifeline.fileno(),), name="worker", daemon=True).start()
    multiprocessing.current_process().daemon = False  # it may have processes of its own
    with contextlib.suppress(BaseException):  # the attempt will fail with it
        importlib.import_module(module)
    line = _Line(pipe)
    with contextlib.suppress(OSError):
        line.send(Ready())
        while (request := line.receive()) is not None:
            _serve_one(line, *request)


def _serve_one(line: _Line, module: str, name: str, claim: Claim, traceparent: str | None) -> None:
    outcome = context_with_trace(traceparent).run(_run, line, module, name, claim)
    if not line.is_own:  # a fork of the handler's has come back from it: only one process speaks
        os._exit(0)
    try:
        line.send(Ended(claim.id, claim.number, outcome, claim.completed_by_handler))
    except OSError:
        raise
    except Exception as error:  # whatever a handler has put into what it said
        refused = refused_to_send(error)
        line.send(Ended(claim.id, claim.number, refused, claim.completed_by_handler))


def _run(line: _Line, module: str, name: str, claim: Claim) -> FromHandler:
    current_claim.set(claim)
    try:
        kind = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part)
    except BaseException as error:
        return Refused(
            "HandlerNotFound",
            f"{module}.{name} cannot be imported in a process: {error}; define the handler at the"
            " top of its module",
        )
    if not isinstance(kind, JobKind):
        return Refused(
            "HandlerNotFound",
            f"{module}.{name} is not a job handler: define it at the top of its module, under its"
            " own name",
        )
    try:
        payload = kind.decode(claim.payload or "")
        job = (Job(claim, line.report, kind.encode_result),) if kind.wants_job else ()
        returned = kind.function(payload, *job)
        if inspect.iscoroutine(returned):  # of a plain wrapper of an async def
            returned = asyncio.run(returned)
        return kind.as_outcome(returned)
    except BaseException as error:
        return outcome_of_exception(error)


class _Line:
    """The connection to the worker."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._owner = os.getpid()
        self._one_at_a_time = threading.Lock()  # threads of a handler may report, too

    @property
    def is_own(self) -> bool:
        """Whether this is the process that was started with it, and no fork."""
        return os.getpid() == self._owner

    def send(self, message: Message) -> None:
        content = written(message)
        with self._one_at_a_time:
            self._pipe.sendall(content)

    def report(self, claim: Claim, text: str) -> Awaitable[None]:
        """Say how far an attempt is."""
        if self.is_own:
            self.send(Progress(claim.id, claim.number, text))
        return stored_elsewhere()

    def receive(self) -> tuple[str, str, Claim, str | None] | None:
        """The next request; None when the worker has gone."""
        try:
            (length,) = HEADER.unpack(self._read(HEADER.size))
            request: tuple[str, str, Claim, str | None]
            request = pickle.loads(self._read(length))  # noqa: S301  # the worker's own words
        except (EOFError, ConnectionError):
            return None
        return request

    def _read(self, length: int) -> bytes:
        content = bytearray()
        while len(content) < length:
            more = self._pipe.recv(min(length - len(content), 1 << 20))
            if not more:
                raise EOFError
            content += more
        return bytes(content)


def _heed_no_signals() -> None:
    """Functions that do nothing, since ignored signals would be ignored by programs that a handler
    starts as well.
    """
    for number in GROUP_SIGNALS:
        signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    forget_signals_in_forks()


def _do_nothing(*_: object) -> None:
    """Whoever stops a worker may reach the processes of its handlers, too."""
