"""What an application does with jobs: putting them in, looking at them, changing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack, overload

from hybrid_runner.client.calls import Client
from hybrid_runner.client.handle import JobHandle
from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.options import (
    CollectManyOptions,
    CollectOptions,
    EnqueueManyOptions,
    EnqueueOptions,
)
from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import Enqueued, JobSummary, JobView, NewJob, State
from hybrid_runner.model.kinds import KindView, UnknownKind
from hybrid_runner.storage.connections.pool import Pool
from hybrid_runner.storage.connections.statements import Fetches

P = TypeVar("P")
R = TypeVar("R")
Item = TypeVar("Item")

_NO_PAYLOAD: Any = {}


class JobCalls:
    """The part of `Runner` that is about jobs."""

    _client: Client

    async def pool(self) -> Pool:
        """The connections that this runner shares in the running loop, opened when there are
        none: for whoever builds on it, and has statements of its own.
        """
        return await self._client.pool()

    # --- putting jobs in

    @overload
    async def enqueue(
        self, kind: JobKind[P, R], payload: P, **options: Unpack[EnqueueOptions]
    ) -> JobHandle[R]: ...
    @overload
    async def enqueue(
        self,
        kind: JobKind[list[Item], R],
        payload: Item,
        *,
        on_conflict: Literal["collect"],
        **options: Unpack[CollectOptions],
    ) -> JobHandle[R]: ...
    @overload
    async def enqueue(
        self, kind: str, payload: Any = ..., **options: Unpack[EnqueueOptions]
    ) -> JobHandle[Any]: ...
    async def enqueue(
        self,
        kind: JobKind[Any, Any] | str,
        payload: Any = _NO_PAYLOAD,
        **options: Unpack[EnqueueOptions],
    ) -> JobHandle[Any]:
        """Store one job; with `connection` in the caller's transaction. `handle.enqueued` says what
        became of its key. With `on_conflict="collect"` the payload is a list of items or one of
        them.

        The options are explained in `EnqueueOptions` and docs/enqueue.md.
        """
        return await self._client.enqueue(kind, payload, options)

    @overload
    async def enqueue_many(
        self,
        kind: JobKind[P, R],
        payloads: Iterable[P | NewJob],
        *,
        key: Callable[[P], str | None] | None = ...,
        **options: Unpack[EnqueueManyOptions],
    ) -> list[Enqueued]: ...
    @overload
    async def enqueue_many(
        self,
        kind: JobKind[list[Item], R],
        payloads: Iterable[Item | NewJob],
        *,
        on_conflict: Literal["collect"],
        key: Callable[[Item], str | None] | None = ...,
        **options: Unpack[CollectManyOptions],
    ) -> list[Enqueued]: ...
    @overload
    async def enqueue_many(
        self,
        kind: str,
        payloads: Iterable[Any],
        *,
        key: Callable[[Any], str | None] | None = ...,
        **options: Unpack[EnqueueManyOptions],
    ) -> list[Enqueued]: ...
    async def enqueue_many(
        self,
        kind: JobKind[Any, Any] | str,
        payloads: Iterable[Any],
        *,
        key: Callable[[Any], str | None] | None = None,
        **options: Unpack[EnqueueManyOptions],
    ) -> list[Enqueued]:
        """Store many jobs in one statement, all or none; `key` makes each job's key of its payload.

        A `NewJob` among the payloads has its own kind and key. The options count for it too; where
        it says something else itself, the call is refused.
        """
        return await self._client.enqueue_many(kind, payloads, key, options)

    # --- looking at jobs and changing them

    @overload
    def handle(self, job_id: int, kind: JobKind[P, R]) -> JobHandle[R]: ...
    @overload
    def handle(self, job_id: int) -> JobHandle[Any]: ...
    def handle(self, job_id: int, kind: JobKind[Any, Any] | None = None) -> JobHandle[Any]:
        """A handle on a job that somebody else enqueued.

        With its handler given, `wait` knows the type of its result.
        """
        return JobHandle(self._client, job_id, "exists", kind)

    async def get(self, job_id: int) -> JobView | None:
        """One job, live or archived."""
        return await self._client.get(job_id)

    async def list_jobs(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        kind: str | None = None,
        most: int = 50,
    ) -> Sequence[JobSummary]:
        """The newest jobs that match."""
        wanted = None if state is None else State(state)
        return await self._client.list_jobs(wanted, queue, kind, most)

    async def list_kinds(self) -> Sequence[KindView]:
        """The kinds that workers have declared, with what they said of each."""
        return await self._client.list_kinds()

    async def unknown_kinds(self, due_for: Duration = "1m") -> Sequence[UnknownKind]:
        """Kinds of which jobs have been due for so long and that no live worker of their queue
        knows.
        """
        return await self._client.unknown_kinds(parse_duration(due_for))

    async def cancel(self, job_id: int, reason: str | None = None) -> CancelAnswer:
        """cancelled, requested (it runs and was told), finished or unknown."""
        return await self._client.cancel(job_id, reason)

    async def retry(self, job_id: int) -> RetryAnswer:
        """Run an ended job again, a waiting one now."""
        return await self._client.retry(job_id)

    async def amend(
        self,
        job_id: int,
        *,
        version: int,
        payload: Any = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        data: Any = None,
    ) -> AmendAnswer:
        """Change a job that waits, if it is still at `version`."""
        return await self._client.amend(job_id, version, payload, priority, run_at, data)

    async def signal(
        self, key: str, payload: Any = None, *, connection: Fetches | None = None
    ) -> int:
        """Every job that waits for the key gets the payload, once; with `connection` when the
        caller's transaction commits. The number of the signal.

        A job that waits later gets it too, if it was there before the signal, for seven days.
        """
        return await self._client.signal(key, payload, connection)

    async def pause(self, queue: str) -> bool:
        """No worker claims from the queue until it is resumed; False when it was paused already."""
        return await self._client.pause(queue)

    async def resume(self, queue: str) -> bool:
        """Workers claim again; False when it was not paused."""
        return await self._client.resume(queue)
