"""What an application declares: handlers of kinds, reconcilers and schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast, overload

from hybrid_runner.durations import Duration, parse_duration, parse_named
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.argument_keys import check_unique
from hybrid_runner.handlers.declaration import JobDecorator, make_budgets, make_kind
from hybrid_runner.handlers.kind import Executor, JobKind, Limits, P
from hybrid_runner.handlers.members import members_of
from hybrid_runner.handlers.reconciler import Reconciler, make_reconciler
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.handlers.schedule_options import ScheduleOptions
from hybrid_runner.handlers.schedules import make_schedule
from hybrid_runner.model.jobs import MAX_ATTEMPTS, Keep
from hybrid_runner.model.schedules import DeclaredSchedule
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.waiting.backoff import Backoff

_NO_PAYLOAD: Any = {}


class Declarations:
    """The part of `Runner` that is about handlers."""

    registry: Registry

    def job(
        self,
        name: str,
        *,
        queue: str = "default",
        max_attempts: int = MAX_ATTEMPTS,
        timeout: Duration | None = "1h",
        executor: Executor | None = None,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  # frozen
        limits: Limits = "ceiling",
        data: Any = None,
        pace: Backoff = Backoff(),  # noqa: B008  # frozen
        max_snoozes: int | None = None,
        max_duration: Duration | None = None,
        finish_within: Duration | None = None,
        on_end: str | None = None,
        unique: Sequence[str] | bool | None = None,
        keep_completed: Duration | None = None,
        keep_failed: Duration | None = None,
        keep_cancelled: Duration | None = None,
    ) -> JobDecorator:
        """Make a function the handler of a kind. `timeout=None` lets it run for ever;
        `limits="default"` lets a job ask for more than `max_attempts` and `timeout`; `keep_…` says
        how long ended jobs are kept. How it waits: `data` is the type of `job.data`, `pace` the
        pause of a `Snooze()`, `max_snoozes`, `max_duration` and `finish_within` bound it, `on_end`
        names the kind that cleans up. `unique` names members of the payload: jobs in which they
        are equal have one key; True is for all of it.
        """
        if not isinstance(name, str):
            raise ConfigurationError(
                'the kind is missing: write @app.job("name") above the handler'
            )
        limit = parse_named("timeout", timeout)
        budgets = make_budgets(max_snoozes, max_duration, finish_within)
        keep = Keep(
            parse_named("keep_completed", keep_completed),
            parse_named("keep_failed", keep_failed),
            parse_named("keep_cancelled", keep_cancelled),
        )

        def decorate(function: Callable[..., Any]) -> JobKind[Any, Any]:
            kind = make_kind(
                function,
                name=name,
                queue=queue,
                executor=executor,
                max_attempts=max_attempts,
                timeout=limit,
                retry=retry,
                keep=keep,
                limits=limits,
                data=data,
                pace=pace,
                budgets=budgets,
                on_end=on_end,
            )
            kind = replace(kind, unique=check_unique(name, unique, members_of(kind.payload)))
            self.registry.add(kind)
            return kind

        return cast("JobDecorator", decorate)

    def reconcile(
        self,
        every: Duration,
        *,
        kind: JobKind[Any, Any],
        key: str,
        most: int = 500,
    ) -> Callable[[Callable[[], str]], Reconciler]:
        """Restore jobs of a kind that the application's own tables say there should be: above a
        function that returns a query.

        Each row is the payload of one job, a column `data` its memory; `key` names columns in
        braces. Once in `every` one worker of the fleet runs it, and stores a job for each row whose
        key no live job has, `most` of them at a time.
        """
        period = parse_duration(every)

        def decorate(function: Callable[[], str]) -> Reconciler:
            reconciler = make_reconciler(function, every=period, kind=kind, key=key, most=most)
            self.registry.add_reconciler(reconciler)
            return reconciler

        return decorate

    @overload
    def schedule(
        self,
        name: str,
        kind: JobKind[P, Any],
        payload: P = ...,
        **options: Unpack[ScheduleOptions],
    ) -> DeclaredSchedule: ...
    @overload
    def schedule(
        self, name: str, kind: str, payload: Any = ..., **options: Unpack[ScheduleOptions]
    ) -> DeclaredSchedule: ...
    def schedule(
        self,
        name: str,
        kind: JobKind[Any, Any] | str,
        payload: Any = _NO_PAYLOAD,
        **options: Unpack[ScheduleOptions],
    ) -> DeclaredSchedule:
        """A job of this kind again and again, or once at a time: by `cron`, `every` or `at`. The
        options are explained in `ScheduleOptions` and docs/schedules.md.

        Workers write it down as they start, and it fires while one lives that declares it.
        """
        schedule = make_schedule(self.registry.get, name, kind, payload, options)
        self.registry.add_schedule(schedule)
        return schedule
