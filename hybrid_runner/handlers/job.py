"""What a handler is given beside its payload."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, Unpack, overload

import orjson
from pydantic import ValidationError

from hybrid_runner.errors import ConfigurationError, StaleClaim
from hybrid_runner.handlers.job_looks import JobLooks
from hybrid_runner.handlers.job_signals import JobSignals, TakesSignals
from hybrid_runner.handlers.json_type import explain
from hybrid_runner.handlers.kind import JobKind, P
from hybrid_runner.handlers.new_jobs import new_follow_up
from hybrid_runner.handlers.notes import Notes
from hybrid_runner.handlers.options import NEW_JOB_NAMES, NewJobOptions, given
from hybrid_runner.jsontext import NotStorable, printable
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.outcomes import Snooze
from hybrid_runner.model.settlements import Finished
from hybrid_runner.policy.rules import finish_by, max_duration
from hybrid_runner.storage.claim_calls import finish_jobs
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.tracing.publish_span import current_traceparent
from hybrid_runner.waiting.callback_tokens import JobCallbacks

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers know it, and only they need defaults

    class Untyped:
        """`Job` alone is a Job[Untyped], whose memory can be anything. With Job[Any] type checkers
        could not tell which overload of `@app.job(…)` is meant.
        """

    D = TypeVar("D", default=Untyped)
    M = TypeVar("M")

    class _Data:
        @overload
        def __get__(self, job: Job[Untyped], owner: object) -> Any: ...
        @overload
        def __get__(self, job: Job[M], owner: object) -> M: ...
        def __get__(self, job: Any, owner: object) -> Any: ...

        def __set__(self, job: Any, value: Any) -> None: ...
else:
    from typing import TypeVar

    D = TypeVar("D")

_NO_PAYLOAD: Any = {}


class JobPort(TakesSignals, Protocol):
    """What a job says to its worker while its handler runs, there or in another process."""

    def report(self, claim: Claim, text: str, /) -> Awaitable[None]:
        """How far the work is, as JSON text."""

    def save(self, claim: Claim, text: str, /) -> Awaitable[None]:
        """Store its memory, which then is `claim.data`: outside of the worker's loop before it
        returns, in it before awaiting it ends.
        """

    def find(self, kind: str, /) -> JobKind[Any, Any] | None:
        """The kind of that name, if it is known here."""

    def callbacks(self, job_id: int, /) -> JobCallbacks:
        """What makes the callback URLs of its job."""


class Job(JobLooks, JobSignals, Generic[D]):
    """One attempt of one job, seen from its handler; `Job[Model]` has a memory of that type."""

    __slots__ = ("_claim", "_kind", "_notes", "_port", "cancel_requested")
    _port: JobPort

    def __init__(self, claim: Claim, kind: JobKind[Any, Any], port: JobPort, notes: Notes) -> None:
        self._claim = claim
        self._kind = kind
        self._port = port
        self._notes = notes
        self.cancel_requested = False
        """True once this attempt should stop; for handlers that cannot be cancelled
        from outside.
        """

    @property
    def id(self) -> int:
        """The job's number."""
        return self._claim.id

    @property
    def claim(self) -> int:
        """The number of this attempt's claim. A statement that looks for id and claim in
        `hybrid_runner.jobs` finds no row once the attempt has lost the job.
        """
        return self._claim.number

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
    def schedule(self) -> str | None:
        """The schedule that made the job, if one did."""
        return self._claim.schedule

    @property
    def tick(self) -> datetime | None:
        """The time of its schedule that the job is for; None without a schedule, and when somebody
        ran it by hand. It says which day's report this is, however late the job runs.
        """
        return self._claim.tick

    @property
    def traceparent(self) -> str | None:
        """The trace that the job belongs to, as W3C text."""
        return self._claim.traceparent

    # --- time

    @property
    def began_at(self) -> datetime:
        """When its first attempt started, by the clock of Postgres."""
        return self._claim.began_at or self._claim.started_at

    @property
    def elapsed(self) -> timedelta:
        """How long ago that was: with all waits, and whatever the clock here shows."""
        return max(timedelta(0), self._now() - self.began_at)

    @property
    def left(self) -> timedelta | None:
        """How long the job may still go on: the least of `max_duration`, `finish_by` and
        `finish_within`, not below zero; None without these.
        """
        budgets = self._kind.rules.budgets
        allowed = max_duration(self._claim, budgets)
        ends = [
            end
            for end in (
                finish_by(self._claim, budgets),
                None if allowed is None else self.began_at + allowed,
            )
            if end is not None
        ]
        return max(timedelta(0), min(ends) - self._now()) if ends else None

    def _now(self) -> datetime:
        return self._claim.server_time(time.monotonic())

    # --- memory

    if TYPE_CHECKING:
        data = _Data()
    else:

        @property
        def data(self) -> D:
            """The job's memory, the same object each time. A `Snooze` or `Repeat` without data
            stores what the handler made of it.
            """
            return self._notes.memory

        @data.setter
        def data(self, value: D) -> None:
            self._notes.memory = value

    @overload
    def save(self: Job[Untyped], data: Any = None) -> Awaitable[None]: ...
    @overload
    def save(self, data: D | None = None) -> Awaitable[None]: ...
    def save(self, data: Any = None) -> Awaitable[None]:
        """Store the memory now, `job.data` or another one: whatever happens, the next attempt has
        it. StaleClaim when the job no longer belongs to this attempt.

        An `async` handler awaits it; in threads and processes it is stored when the call returns.
        """
        if data is not None:
            self._notes.memory = data
        if self._claim.completed_by_handler:
            raise StaleClaim(f"job {self.id} was completed: nothing of it can be saved any more")
        try:
            text = self._kind.write_memory(self._notes.memory, "the data")
        except NotStorable as error:
            raise ConfigurationError(f"{self.kind}: {error}") from None
        except ValidationError as error:
            raise ConfigurationError(f"{self.kind}: {explain(error, 'data')}") from None
        return self._port.save(self._claim, text)

    # --- what comes next

    def later(self, reason: str | None = None) -> Snooze:
        """`return job.later()`: run again after the pause that the kind's `pace` says. A reason is
        logged as a warning and kept among the job's errors.
        """
        return Snooze(None, reason=reason)

    @overload
    def then(self, kind: JobKind[P, Any], payload: P, **options: Unpack[NewJobOptions]) -> None: ...
    @overload
    def then(self, kind: str, payload: Any = ..., **options: Unpack[NewJobOptions]) -> None: ...
    def then(
        self,
        kind: JobKind[Any, Any] | str,
        payload: Any = _NO_PAYLOAD,
        **options: Unpack[NewJobOptions],
    ) -> None:
        """A job that is to follow: stored by the statement that completes this one or ends its run,
        or not at all. If a live job has its key, that one is left as it is.
        """
        if self._claim.completed_by_handler:
            raise StaleClaim(f"job {self.id} was completed: say what follows before that")
        job = new_follow_up(self._port.find, kind, payload, given(options, NEW_JOB_NAMES))
        self._notes.follow(self._in_trace(job))

    def _in_trace(self, job: NewJob) -> NewJob:
        trace = current_traceparent() or self.traceparent
        return job if trace is None or job.traceparent else replace(job, traceparent=trace)

    def callback_url(self, name: str) -> str:
        """A URL for somebody who has no login: a POST there signals this job, and no other, by the
        key `name:id`, once. It begins with the setting `http_url`; without, it is a path.
        """
        return self._port.callbacks(self.id).url(name)

    # --- saying how it goes

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
        return self._port.report(self._claim, orjson.dumps(progress).decode())

    async def complete(self, result: Any = None, *, connection: Fetches) -> None:
        """Complete the job in the caller's transaction: the work and its completion commit
        together.
        """
        try:
            text = self._kind.encode_result(result)
        except NotStorable as error:
            raise ConfigurationError(str(error)) from None
        ended = Finished(
            self._claim, State.COMPLETED, result=text, follow_ups=self._notes.follow_ups
        )
        on_end = self._kind.on_end
        on_ends = {} if on_end is None else {self._kind.name: on_end}
        if not await finish_jobs(connection, [ended], on_ends=on_ends):
            raise StaleClaim(f"job {self.id} no longer belongs to this attempt: stop working on it")
        self._claim.completed_by_handler = True
