"""A job runner that lives in Postgres: INSERT a row, a worker runs it."""

TYPE_CHECKING = False
"""As in `typing`, whose import would take longer than this module."""

if TYPE_CHECKING:
    from hybrid_runner.client.handle import JobHandle
    from hybrid_runner.client.options import EnqueueManyOptions, EnqueueOptions
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
        StaleClaim,
        WaitTimeout,
    )
    from hybrid_runner.handlers.job import Job
    from hybrid_runner.handlers.kind import JobKind
    from hybrid_runner.model.answers import AmendAnswer, CancelAnswer, EnqueueAnswer, RetryAnswer
    from hybrid_runner.model.jobs import Enqueued, JobStatus, JobSummary, JobView, NewJob, State
    from hybrid_runner.model.outcomes import Cancel, Fail, Retry, Snooze
    from hybrid_runner.policy.retry import RetryPolicy
    from hybrid_runner.runner import Runner
    from hybrid_runner.settings import SettingOptions, Settings
    from hybrid_runner.version import VERSION as __version__  # noqa: N811  # the name the world expects
    from hybrid_runner.worker.report.status import QueueStatus, WorkerStatus
    from hybrid_runner.worker.worker import Worker

__all__ = [
    "AmendAnswer",
    "Cancel",
    "CancelAnswer",
    "ConfigurationError",
    "DatabaseError",
    "DatabaseUnavailable",
    "EnqueueAnswer",
    "EnqueueError",
    "EnqueueManyOptions",
    "EnqueueOptions",
    "Enqueued",
    "Fail",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "JobKind",
    "JobNotFound",
    "JobStatus",
    "JobSummary",
    "JobView",
    "KeyTaken",
    "NewJob",
    "OpenInAnotherLoop",
    "QueueStatus",
    "Retry",
    "RetryAnswer",
    "RetryPolicy",
    "Runner",
    "RunnerError",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaUnreleased",
    "SettingOptions",
    "Settings",
    "Snooze",
    "StaleClaim",
    "State",
    "WaitTimeout",
    "Worker",
    "WorkerStatus",
    "__version__",
]

_MODULES = {
    "hybrid_runner.model.answers": (
        "AmendAnswer",
        "CancelAnswer",
        "EnqueueAnswer",
        "RetryAnswer",
    ),
    "hybrid_runner.client.handle": ("JobHandle",),
    "hybrid_runner.client.options": (
        "EnqueueManyOptions",
        "EnqueueOptions",
    ),
    "hybrid_runner.handlers.job": ("Job",),
    "hybrid_runner.model.jobs": (
        "Enqueued",
        "JobStatus",
        "JobSummary",
        "JobView",
        "NewJob",
        "State",
    ),
    "hybrid_runner.model.outcomes": (
        "Cancel",
        "Fail",
        "Retry",
        "Snooze",
    ),
    "hybrid_runner.policy.retry": ("RetryPolicy",),
    "hybrid_runner.handlers.kind": ("JobKind",),
    "hybrid_runner.runner": ("Runner",),
    "hybrid_runner.settings": (
        "SettingOptions",
        "Settings",
    ),
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
