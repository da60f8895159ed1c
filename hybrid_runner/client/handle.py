"""A job that was enqueued, as its producer holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hybrid_runner.client.waiting import OnStatus
from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError, JobCancelled, JobFailed, JobNotFound
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.jsontext import decode
from hybrid_runner.model.answers import CancelAnswer, EnqueueAnswer
from hybrid_runner.model.jobs import LARGEST_ID, JobView, State

if TYPE_CHECKING:  # a Client makes handles
    from hybrid_runner.client.calls import Client

R = TypeVar("R")


class JobHandle(Generic[R]):
    """One job: wait for its result, look at it, cancel it."""

    def __init__(
        self, client: Client, job_id: int, enqueued: EnqueueAnswer, kind: JobKind[Any, R] | None
    ) -> None:
        check_id(job_id)
        self.id = job_id
        self.enqueued: EnqueueAnswer = enqueued
        """`inserted`, or what became of the job that has the key: `exists` (unchanged) or
        `replaced`.
        """
        self._client = client
        self._kind = kind

    def __repr__(self) -> str:
        return f"JobHandle(id={self.id}, enqueued={self.enqueued!r})"

    async def wait(
        self, timeout: Duration | None = None, *, on_status: OnStatus | None = None
    ) -> R:
        """Wait for the job's result; raises JobFailed, JobCancelled or WaitTimeout.

        An outage of Postgres does not end the wait. Without a `timeout` it waits for ever.
        """
        status = await self._client.wait_ended(self.id, timeout, on_status)
        if status.state is State.FAILED:
            raise JobFailed(
                self.id, status.kind, status.error_type, status.error_message, status.attempt
            )
        if status.state is State.CANCELLED:
            raise JobCancelled(self.id, status.kind, status.error_message or status.error_type)
        kind = self._kind or self._client.registry.get(status.kind)
        if kind is None:
            result: R = decode(status.result)
            return result
        if kind.name != status.kind:
            raise ConfigurationError(f"job {self.id} is a {status.kind!r}, not a {kind.name!r}")
        return kind.decode_result(status.result)  # type: ignore[no-any-return]  # whatever R is

    async def get(self) -> JobView:
        """The job as it is now."""
        job = await self._client.get(self.id)
        if job is None:
            raise JobNotFound(f"there is no job {self.id}")
        return job

    async def cancel(self, reason: str | None = None) -> CancelAnswer:
        """End the job if it is queued; ask its worker to stop it if it runs."""
        return await self._client.cancel(self.id, reason)


def check_id(job_id: object) -> None:
    """All waits ask together: what Postgres would refuse must not be among them."""
    if not isinstance(job_id, int) or not -LARGEST_ID <= job_id <= LARGEST_ID:
        raise ConfigurationError(f"{job_id!r} is no id of a job: use one that enqueue returned")
