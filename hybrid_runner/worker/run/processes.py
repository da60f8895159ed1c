"""Processes for handlers that need a core of their own. Each runs one job at a time, and is killed
when its attempt is stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Awaitable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from hybrid_runner.handlers.job import Job, Report
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import (
    HandlerOutcome,
    Outcome,
    Raised,
    Refused,
    as_declared,
    outcome_of_exception,
)
from hybrid_runner.telemetry.logs.setup import Logs, configure_logs, configured_logs
from hybrid_runner.telemetry.tracing.current import current_claim
from hybrid_runner.telemetry.tracing.publish_span import context_with_trace, current_traceparent
from hybrid_runner.worker.run.progress import stored_elsewhere

log = logging.getLogger("hybrid_runner.worker")
_GROUP = (signal.SIGINT, signal.SIGTERM)
_spawn = multiprocessing.get_context("spawn")

START = 60.0
"""Seconds that a process may take until it can run a handler."""


class ProcessPool:
    """Child processes, started when needed and kept."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._free: list[_Child] = []
        self._all: set[_Child] = set()

    async def prepare(self, kind: JobKind[Any, Any]) -> None:
        """Make sure that a child that has imported the handler's module is free."""
        while self._free and not self._free[-1].process.is_alive():
            self._end(self._free.pop())
        if not self._free:
            child = self._new(kind.function.__module__)
            try:
                await child.ready()
            except BaseException:
                self._end(child)
                raise
            self._free.append(child)

    async def run(self, kind: JobKind[Any, Any], claim: Claim) -> Outcome:
        """Run one attempt in a child, right after `prepare`. Cancelling it kills the
        child.
        """
        child = self._free.pop()
        try:
            outcome = await child.run(kind, claim, self._report)
        except BaseException:
            self._end(child)
            raise
        if child.process.is_alive():
            self._free.append(child)
        else:
            self._end(child)
        return outcome

    async def close(self) -> None:
        """Kill all children."""
        for child in list(self._all):
            self._end(child)

    def _new(self, module: str) -> _Child:
        child = _Child(module)
        self._all.add(child)
        return child

    def _end(self, child: _Child) -> None:
        self._all.discard(child)
        child.end()


class ProcessDied(Exception):
    """A process for handlers ended, or did not start."""


class _Child:
    def __init__(self, module: str) -> None:
        self._pipe, child_pipe = _spawn.Pipe()
        self.process: SpawnProcess = _spawn.Process(
            target=serve, args=(child_pipe, configured_logs(), module), daemon=True
        )
        # Inherited: the child ignores them as soon as it can.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _GROUP)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        child_pipe.close()

    async def ready(self) -> None:
        """Wait until it has started and imported its module, at most `START` seconds."""
        try:
            async with asyncio.timeout(START):
                await self._receive()
        except (EOFError, OSError) as error:  # TimeoutError is one of these
            if isinstance(error, TimeoutError):
                raise ProcessDied(
                    f"a process for handlers was not ready after {START:.0f} s: what does its"
                    " module do?"
                ) from None
            self.process.join(1)
            raise ProcessDied(
                f"a process for handlers ended with exit code {self.process.exitcode} as it started"
            ) from None

    async def run(self, kind: JobKind[Any, Any], claim: Claim, report: Report) -> Outcome:
        # In a thread: a large payload fills the pipe while the child still starts.
        called = (
            kind.function.__module__,
            kind.function.__qualname__,
            claim,
            current_traceparent(),
        )
        await asyncio.to_thread(self._pipe.send, called)
        while True:
            try:
                word, message = await self._receive()
            except (EOFError, OSError):
                self.process.join(1)
                return Raised(
                    "ProcessDied",
                    f"the process of this attempt ended with exit code {self.process.exitcode}",
                )
            except Exception as error:  # whatever the class of what was sent raises here
                return _unsendable(error)
            if word == "outcome":
                outcome: Outcome
                outcome, claim.completed_by_handler = message
                return outcome
            report(claim, message)

    async def _receive(self) -> Any:
        loop = asyncio.get_running_loop()
        readable = loop.create_future()

        def on_readable() -> None:
            if not readable.done():
                readable.set_result(None)

        loop.add_reader(self._pipe.fileno(), on_readable)
        try:
            await readable
        finally:
            loop.remove_reader(self._pipe.fileno())
        return self._pipe.recv()

    def end(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5)
        self._pipe.close()


def serve(pipe: Connection, logs: Logs | None, module: str) -> None:
    """The main function of a child: report that it is ready, then run one attempt after another and
    report their outcomes, until the parent is gone.
    """
    if logs is not None:
        configure_logs(logs.level, logs.layout, logs.dsns)
    for number in _GROUP:  # they reach the whole group; the parent decides what they mean
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _GROUP)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()

    def report(_claim: Claim, text: str) -> Awaitable[None]:
        pipe.send(("progress", text))
        return stored_elsewhere()

    with contextlib.suppress(Exception):  # the attempt will fail with it
        importlib.import_module(module)
    with contextlib.suppress(OSError):
        pipe.send(("ready", None))
    while True:
        try:
            module, name, claim, traceparent = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            outcome = context_with_trace(traceparent).run(_run, module, name, claim, report)
            if isinstance(outcome, HandlerOutcome):
                outcome = as_declared(outcome)
            _send(pipe, outcome, claim)
        except OSError:
            return


def _send(pipe: Connection, outcome: Outcome, claim: Claim) -> None:
    try:
        pipe.send(("outcome", (outcome, claim.completed_by_handler)))
    except OSError:
        raise
    except Exception as error:  # pickle raises whatever what it is given raises
        pipe.send(("outcome", (_unsendable(error), claim.completed_by_handler)))


def _unsendable(error: Exception) -> Refused:
    reason = f"what the handler said cannot be sent from its process: {error}"
    return Refused("OutcomeRefused", reason)


def _end_with_parent() -> None:
    """End when the worker was killed: the job will run again elsewhere."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(module: str, name: str, claim: Claim, report: Report) -> Outcome:
    current_claim.set(claim)
    try:
        kind = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part)
    except Exception as error:
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
        job = (Job(claim, report, kind.encode_result),) if kind.wants_job else ()
        returned = kind.function(payload, *job)
        if inspect.iscoroutine(returned):  # of a plain wrapper of an async def
            returned = asyncio.run(returned)
        return kind.as_outcome(returned)
    except BaseException as error:
        return outcome_of_exception(error)
