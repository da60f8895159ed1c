"""What a handler is given beside its payload."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import orjson

from hybrid_runner.errors import ConfigurationError, StaleClaim
from hybrid_runner.jsontext import NotStorable, decode, printable
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Finished
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.storage.worker_calls import finish_jobs

Report = Callable[[Claim, str], Awaitable[None]]


class Job:
    """One attempt of one job, seen from its handler."""

    __slots__ = ("_claim", "_data", "_encode_result", "_report", "cancel_requested")

    def __init__(self, claim: Claim, report: Report, encode_result: Callable[[Any], str]) -> None:
        self._claim = claim
        self._report = report
        self._encode_result = encode_result
        self._data: Any = None
        self.cancel_requested = False
        """True once this attempt should stop; for handlers that cannot be cancelled
        from outside.
        """

    @property
    def id(self) -> int:
        """The job's number."""
        return self._claim.id

    @property
    def kind(self) -> str:
        """The job's kind."""
        return self._claim.kind

    @property
    def queue(self) -> str:
        """The job's queue."""
        return self._claim.queue

    @property
    def key(self) -> str | None:
        """The job's key, if it has one."""
        return self._claim.key

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._claim.attempt

    @property
    def snoozes(self) -> int:
        """How often the job was put back because its handler said `Snooze`."""
        return self._claim.snoozes

    @property
    def max_attempts(self) -> int:
        """How many attempts the job may have."""
        return self._claim.max_attempts

    @property
    def run_at(self) -> datetime:
        """When the job was due."""
        return self._claim.run_at

    @property
    def traceparent(self) -> str | None:
        """The trace that the job belongs to, as W3C text."""
        return self._claim.traceparent

    @property
    def data(self) -> Any:
        """The job's memory, as the producer or the last `Snooze(…, data=…)` set it."""
        if self._data is None and self._claim.data is not None:
            self._data = decode(self._claim.data)
        return self._data

    def progress(
        self, fraction: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report how far the work is, 0 to 1.

        An `async` handler awaits it, until it is stored; in threads and processes it is stored by
        itself.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise ConfigurationError(f"progress must be between 0 and 1, not {fraction!r}")
        progress = {
            "fraction": fraction,
            "message": None if message is None else printable(message, 1000),
        }
        return self._report(self._claim, orjson.dumps(progress).decode())

    async def complete(self, result: Any = None, *, connection: Fetches) -> None:
        """Complete the job in the caller's transaction: the work and its completion commit
        together.
        """
        try:
            text = self._encode_result(result)
        except NotStorable as error:
            raise ConfigurationError(str(error)) from None
        if not await finish_jobs(connection, [Finished(self._claim, State.COMPLETED, result=text)]):
            raise StaleClaim(f"job {self.id} no longer belongs to this attempt: stop working on it")
        self._claim.completed_by_handler = True
