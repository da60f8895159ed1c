"""A job runner that lives in Postgres: INSERT a row, a worker runs it."""

TYPE_CHECKING = False
"""As in `typing`, whose import would take longer than this module."""

if TYPE_CHECKING:
    from hybrid_runner.attach.options import AttachOptions
    from hybrid_runner.client.handle import JobHandle
    from hybrid_runner.errors import (
        ConfigurationError,
        DatabaseError,
        DatabaseUnavailable,
        EnqueueError,
        JobCancelled,
        JobFailed,
        JobNotFound,
        KeyTaken,
        OpenInAnotherLoop,
        RunnerError,
        SchemaMissing,
        SchemaTooNew,
        SchemaUnreleased,
        SignalRefused,
        StaleClaim,
        WaitTimeout,
    )
    from hybrid_runner.handlers.argument_keys import key_of
    from hybrid_runner.handlers.ended import Ended
    from hybrid_runner.handlers.job import Job
    from hybrid_runner.handlers.kind import JobKind
    from hybrid_runner.handlers.options import (
        CollectManyOptions,
        CollectOptions,
        EnqueueManyOptions,
        EnqueueOptions,
    )
    from hybrid_runner.handlers.schedule_options import ScheduleOptions
    from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, EnqueueAnswer, RetryAnswer
    from hybrid_runner.model.job_events import JobEvent
    from hybrid_runner.model.jobs import (
        Enqueued,
        JobSnapshot,
        JobStatus,
        JobSummary,
        JobView,
        NewJob,
        State,
    )
    from hybrid_runner.model.kinds import KindView, UnknownKind
    from hybrid_runner.model.outcomes import Cancel, Fail, Repeat, Retry, Snooze
    from hybrid_runner.model.schedules import (
        DeclaredSchedule,
        ScheduleSummary,
        ScheduleView,
        Tick,
    )
    from hybrid_runner.model.source_views import Attached, Detached, SourceView
    from hybrid_runner.model.sources import Columns, Words
    from hybrid_runner.policy.retry import RetryPolicy
    from hybrid_runner.runner import Runner
    from hybrid_runner.settings import SettingOptions, Settings
    from hybrid_runner.version import VERSION as __version__  # noqa: N811  # the name the world expects
    from hybrid_runner.waiting.backoff import Backoff
    from hybrid_runner.waiting.confirmations import Confirmations
    from hybrid_runner.waiting.gate import Gate
    from hybrid_runner.waiting.tries import Tries
    from hybrid_runner.worker.report.status import QueueStatus, WorkerStatus
    from hybrid_runner.worker.worker import Worker

__all__ = [
    "AmendAnswer",
    "AttachOptions",
    "Attached",
    "Backoff",
    "Cancel",
    "CancelAnswer",
    "CollectManyOptions",
    "CollectOptions",
    "Columns",
    "ConfigurationError",
    "Confirmations",
    "DatabaseError",
    "DatabaseUnavailable",
    "DeclaredSchedule",
    "Detached",
    "Ended",
    "EnqueueAnswer",
    "EnqueueError",
    "EnqueueManyOptions",
    "EnqueueOptions",
    "Enqueued",
    "Fail",
    "Gate",
    "Job",
    "JobCancelled",
    "JobEvent",
    "JobFailed",
    "JobHandle",
    "JobKind",
    "JobNotFound",
    "JobSnapshot",
    "JobStatus",
    "JobSummary",
    "JobView",
    "KeyTaken",
    "KindView",
    "NewJob",
    "OpenInAnotherLoop",
    "QueueStatus",
    "Repeat",
    "Retry",
    "RetryAnswer",
    "RetryPolicy",
    "Runner",
    "RunnerError",
    "ScheduleOptions",
    "ScheduleSummary",
    "ScheduleView",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaUnreleased",
    "SettingOptions",
    "Settings",
    "SignalRefused",
    "Snooze",
    "SourceView",
    "StaleClaim",
    "State",
    "Tick",
    "Tries",
    "UnknownKind",
    "WaitTimeout",
    "Words",
    "Worker",
    "WorkerStatus",
    "__version__",
    "key_of",
]

_MODULES = {
    "hybrid_runner.model.answers": (
        "AmendAnswer",
        "CancelAnswer",
        "EnqueueAnswer",
        "RetryAnswer",
    ),
    "hybrid_runner.attach.options": ("AttachOptions",),
    "hybrid_runner.client.handle": ("JobHandle",),
    "hybrid_runner.handlers.argument_keys": ("key_of",),
    "hybrid_runner.handlers.options": (
        "CollectManyOptions",
        "CollectOptions",
        "EnqueueManyOptions",
        "EnqueueOptions",
    ),
    "hybrid_runner.handlers.schedule_options": ("ScheduleOptions",),
    "hybrid_runner.handlers.ended": ("Ended",),
    "hybrid_runner.handlers.job": ("Job",),
    "hybrid_runner.model.job_events": ("JobEvent",),
    "hybrid_runner.model.jobs": (
        "Enqueued",
        "JobSnapshot",
        "JobStatus",
        "JobSummary",
        "JobView",
        "NewJob",
        "State",
    ),
    "hybrid_runner.model.kinds": (
        "KindView",
        "UnknownKind",
    ),
    "hybrid_runner.model.outcomes": (
        "Cancel",
        "Fail",
        "Repeat",
        "Retry",
        "Snooze",
    ),
    "hybrid_runner.model.schedules": (
        "DeclaredSchedule",
        "ScheduleSummary",
        "ScheduleView",
        "Tick",
    ),
    "hybrid_runner.model.source_views": (
        "Attached",
        "Detached",
        "SourceView",
    ),
    "hybrid_runner.model.sources": (
        "Columns",
        "Words",
    ),
    "hybrid_runner.policy.retry": ("RetryPolicy",),
    "hybrid_runner.handlers.kind": ("JobKind",),
    "hybrid_runner.runner": ("Runner",),
    "hybrid_runner.settings": (
        "SettingOptions",
        "Settings",
    ),
    "hybrid_runner.waiting.backoff": ("Backoff",),
    "hybrid_runner.waiting.confirmations": ("Confirmations",),
    "hybrid_runner.waiting.gate": ("Gate",),
    "hybrid_runner.waiting.tries": ("Tries",),
    "hybrid_runner.worker.worker": ("Worker",),
    "hybrid_runner.worker.report.status": (
        "QueueStatus",
        "WorkerStatus",
    ),
}
"""Where the public names are that are not errors. A module is imported when a name of it is first
asked for: together they take a quarter of a second, and the command line seldom needs all.
"""

if not TYPE_CHECKING:  # type checkers would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Import a public name."""
        from importlib import import_module  # noqa: PLC0415  # only for who uses the package

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "__version__":
            value = import_module("hybrid_runner.version").VERSION
        else:
            module = next(
                (module for module, names in _MODULES.items() if name in names),
                "hybrid_runner.errors",
            )
            value = getattr(import_module(module), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """All public names, also those that nobody has asked for yet."""
        return sorted({*globals(), *__all__})
