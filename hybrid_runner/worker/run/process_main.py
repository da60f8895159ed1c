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

from hybrid_runner import secrets
from hybrid_runner.errors import ConfigurationError, RunnerError, StaleClaim
from hybrid_runner.handlers.job import Job
from hybrid_runner.handlers.job_signals import NOT_ASYNC
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.notes import Notes
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import NOTHING_LEFT, Left, Refused, outcome_of_exception
from hybrid_runner.model.signals import Given
from hybrid_runner.telemetry.logs.setup import Logs, configure_logs
from hybrid_runner.telemetry.tracing.current import current_claim
from hybrid_runner.telemetry.tracing.publish_span import context_with_trace
from hybrid_runner.waiting.callback_tokens import JobCallbacks
from hybrid_runner.worker.run.process_group import end_with, lead_group
from hybrid_runner.worker.run.process_messages import (
    HEADER,
    Ended,
    FromHandler,
    Message,
    Progress,
    Ready,
    Save,
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
    known_secrets: tuple[str, ...],
    module: str,
    worker: int,
) -> None:
    """Say that it is ready, then run one attempt after another and send their outcomes, until the
    worker is gone.
    """
    lead_group(lifeline.fileno(), worker)
    secrets.learn(*known_secrets)
    if logs is not None:
        configure_logs(logs.level, logs.layout)
    _heed_no_signals()
    threading.Thread(target=end_with, args=(lifeline.fileno(),), name="worker", daemon=True).start()
    multiprocessing.current_process().daemon = False  # it may have processes of its own
    with contextlib.suppress(BaseException):  # the attempt will fail with it
        importlib.import_module(module)
    port = _ProcessPort(pipe)
    with contextlib.suppress(OSError):
        port.send(Ready())
        while (request := port.receive()) is not None:
            _serve_one(port, *request)


def _serve_one(
    port: _ProcessPort, module: str, name: str, claim: Claim, traceparent: str | None
) -> None:
    outcome, left = context_with_trace(traceparent).run(_run, port, module, name, claim)
    if not port.is_own:  # a fork of the handler's has come back from it: only one process speaks
        os._exit(0)
    port.end_attempt()
    try:
        completed, uses = claim.completed_by_handler, claim.uses
        port.send(Ended(claim.id, claim.number, outcome, completed, left, uses))
    except OSError:
        raise
    except Exception as error:  # whatever a handler has put into what it said
        refused = refused_to_send(error)
        port.send(Ended(claim.id, claim.number, refused, claim.completed_by_handler))


def _run(port: _ProcessPort, module: str, name: str, claim: Claim) -> tuple[FromHandler, Left]:
    current_claim.set(claim)
    port.begin_attempt(claim)
    try:
        kind = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part)
    except BaseException as error:
        reason = (
            f"{module}.{name} cannot be imported in a process: {error}; define the handler at the"
            " top of its module"
        )
        return Refused("HandlerNotFound", reason), NOTHING_LEFT
    if not isinstance(kind, JobKind):
        reason = (
            f"{module}.{name} is not a job handler: define it at the top of its module, under its"
            " own name"
        )
        return Refused("HandlerNotFound", reason), NOTHING_LEFT
    notes = Notes(claim, kind)
    try:
        payload = kind.decode(claim.payload or "")
        job = (Job(claim, kind, port, notes),) if kind.wants_job else ()
        returned = kind.function(payload, *job)
        if inspect.iscoroutine(returned):  # of a plain wrapper of an async def
            returned = asyncio.run(returned)
        outcome: FromHandler = kind.as_outcome(returned)
    except BaseException as error:
        outcome = outcome_of_exception(error)
    return notes.leave(outcome)


class _ProcessPort:
    """The connection to the worker."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._owner = os.getpid()
        self._one_at_a_time = threading.Lock()  # threads of a handler may report, too
        self._asking = threading.Lock()  # one at a time reads what the worker answers
        self._attempt: Claim | None = None
        self._callbacks: JobCallbacks | None = None

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

    def save(self, claim: Claim, text: str) -> Awaitable[None]:
        """Have a memory stored, and wait for that."""
        if not self.is_own:
            raise ConfigurationError(
                "job.save(…) was called in a fork: only the process of the handler can save"
            )
        with self._asking:
            if self._attempt is not claim:
                raise StaleClaim(f"the attempt of job {claim.id} has ended: stop working on it")
            try:
                self.send(Save(claim.id, claim.number, text))
                refused = self._receive()
            except (EOFError, OSError):
                raise StaleClaim(f"the worker of job {claim.id} is gone") from None
        if refused is not None:
            reason, is_stale = refused
            raise StaleClaim(reason) if is_stale else RunnerError(reason)
        claim.data = text
        return stored_elsewhere()

    def take(self, _claim: Claim, _key: str, _call: int) -> Awaitable[Given | None]:
        """A process cannot unwind its handler."""
        raise ConfigurationError(NOT_ASYNC)

    def find(self, _: str) -> JobKind[Any, Any] | None:
        """None is known here: the worker sees to their queues."""
        return None

    def callbacks(self, job_id: int) -> JobCallbacks:
        """Those of the job that runs here: more is not sent to this process."""
        if self._callbacks is None or self._callbacks.job_id != job_id:
            raise StaleClaim(f"the attempt of job {job_id} has ended: stop working on it")
        return self._callbacks

    def begin_attempt(self, claim: Claim) -> None:
        self._attempt = claim

    def end_attempt(self) -> None:
        """From here on only the next request is read; a thread that goes on can save nothing."""
        with self._asking:
            self._attempt = None

    def receive(self) -> tuple[str, str, Claim, str | None] | None:
        """The next request; None when the worker has gone."""
        try:
            module, name, claim, traceparent, self._callbacks = self._receive()
        except (EOFError, ConnectionError):
            return None
        return module, name, claim, traceparent

    def _receive(self) -> Any:
        (length,) = HEADER.unpack(self._read(HEADER.size))
        return pickle.loads(self._read(length))  # noqa: S301  # the worker's own words

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
