"""A job runner that lives in Postgres: INSERT a row, a worker runs it."""

from hybrid_runner.answers import AmendAnswer, CancelAnswer, EnqueueAnswer, RetryAnswer
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
from hybrid_runner.job import Job
from hybrid_runner.models import Enqueued, JobStatus, JobView, NewJob, State
from hybrid_runner.outcomes import Cancel, Fail, Retry, Snooze
from hybrid_runner.policy.pace import RetryPolicy
from hybrid_runner.registry import JobKind
from hybrid_runner.runner import Runner
from hybrid_runner.settings import SettingOptions, Settings
from hybrid_runner.version import VERSION as __version__  # noqa: N811  # the name the world expects
from hybrid_runner.worker.service import Worker
from hybrid_runner.worker.status import QueueStatus, WorkerStatus

__all__ = [
    "AmendAnswer", "Cancel", "CancelAnswer", "ConfigurationError", "DatabaseError",
    "DatabaseUnavailable", "EnqueueAnswer", "EnqueueError", "EnqueueManyOptions",
    "EnqueueOptions", "Enqueued", "Fail", "Job", "JobCancelled", "JobFailed", "JobHandle",
    "JobKind", "JobNotFound", "JobStatus", "JobView", "KeyTaken", "NewJob", "OpenInAnotherLoop",
    "QueueStatus", "Retry", "RetryAnswer", "RetryPolicy", "Runner", "RunnerError",
    "SchemaMissing", "SchemaTooNew", "SchemaUnreleased", "SettingOptions", "Settings", "Snooze", "StaleClaim",
    "State", "WaitTimeout", "Worker", "WorkerStatus", "__version__",
]  # fmt: skip
