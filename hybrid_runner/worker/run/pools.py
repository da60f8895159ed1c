"""Calls handlers: in the event loop, in a thread, or in a process."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import CoroutineType
from typing import Any

from hybrid_runner.handlers.job import Job, JobPort
from hybrid_runner.handlers.kind import Executor, JobKind
from hybrid_runner.model.claims import Claim
from hybrid_runner.worker.run.places import Places
from hybrid_runner.worker.run.processes import ProcessPool


class HandlerPools:
    """The thread pool and the process pool. Each starts with its first job."""

    def __init__(self, *, threads: int, processes: int, port: JobPort) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="hybrid-runner")
        self._processes = ProcessPool(port)
        self.places: dict[Executor, Places] = {
            "thread": Places(threads),
            "process": Places(processes),
        }
        self._surviving: dict[int, asyncio.Future[Any]] = {}

    @asynccontextmanager
    async def reserve(self, kind: JobKind[Any, Any], claim: Claim) -> AsyncIterator[None]:
        """Within the context a thread or a process is free for the handler; entering waits for it
        a moment, then raises NoPlace.
        """
        places = self.places[kind.executor]
        await places.take()
        try:
            if kind.executor == "process":
                await self._processes.prepare(kind)
            yield
        finally:
            surviving_thread = self._surviving.get(claim.id)
            if surviving_thread is None:
                places.give_back()
            else:
                surviving_thread.add_done_callback(lambda _: places.give_back())

    async def call(
        self, kind: JobKind[Any, Any], payload: Any, job: Job | None, claim: Claim
    ) -> Any:
        """Call the handler; returns its return value, or from a process its outcome and what it
        leaves.
        """
        arguments = (payload,) if job is None else (payload, job)
        match kind.executor:
            case "async":
                returned = kind.function(*arguments)
            case "thread":
                returned = await self._in_thread(claim.id, kind, arguments)
            case "process":
                return await self._processes.run(kind, claim)
        if type(returned) is CoroutineType or inspect.isawaitable(returned):  # the first is quicker
            return await returned
        return returned  # of a plain def, or of one that runs the async def that it wraps

    def surviving_thread(self, job_id: int) -> asyncio.Future[Any] | None:
        """The future of the thread that outlived this job's attempt, if one did."""
        return self._surviving.pop(job_id, None) if self._surviving else None

    def close_waits(self) -> None:
        """Let nobody begin to wait for a thread or a process."""
        for places in self.places.values():
            places.is_closing = True

    async def close(self) -> None:
        """Kill the processes. Threads that still run cannot be ended."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._processes.close()

    async def _in_thread(
        self, job_id: int, kind: JobKind[Any, Any], arguments: tuple[Any, ...]
    ) -> Any:
        context = contextvars.copy_context()

        def call() -> tuple[Any, BaseException | None]:
            try:
                return context.run(kind.function, *arguments), None
            except BaseException as error:  # StopIteration and SystemExit cannot pass a future
                return None, error

        thread = self._threads.submit(call)
        try:
            value, error = await asyncio.wrap_future(thread)
        except asyncio.CancelledError:
            if thread.running():
                self._surviving[job_id] = asyncio.wrap_future(thread)
            thread.add_done_callback(_close_returned)
            raise
        if error is None:
            return value
        try:
            raise error
        finally:
            del error  # it holds this frame, which would hold it


def _close_returned(thread: Future[tuple[Any, BaseException | None]]) -> None:
    """A wrapper of an async def that returned too late: nobody awaits that any more, and Python
    would warn of it.
    """
    if not thread.cancelled():
        returned, _ = thread.result()
        if inspect.iscoroutine(returned):
            returned.close()
