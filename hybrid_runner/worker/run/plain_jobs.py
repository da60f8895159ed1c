"""New jobs as JSON, on their way from a process for handlers to its worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.new_job_checks import MOST_BYTES, MOST_FOLLOW_UPS
from hybrid_runner.model.jobs import NewJob

_USUAL = {field.name: field.default for field in fields(NewJob)}
_SPANS = {"delay", "timeout", "max_duration", "finish_within"}
_MOMENTS = {"run_at", "finish_by"}
_NUMBERS = {"priority", "max_attempts", "max_snoozes"}


def plain_jobs(jobs: Sequence[NewJob]) -> list[dict[str, Any]]:
    """What is not as usual of each."""
    return [
        {
            name: _plain(value)
            for name, usual in _USUAL.items()
            if (value := getattr(job, name)) != usual
        }
        for job in jobs
    ]


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, datetime) else value


def read_jobs(plain: object) -> tuple[NewJob, ...]:
    """What came; ConfigurationError, ValueError or OverflowError if it is none of that."""
    if not isinstance(plain, list) or len(plain) > MOST_FOLLOW_UPS:
        raise ConfigurationError("what should follow is no list of jobs")
    jobs = tuple(_job(each) for each in plain)
    if sum(len(job.payload) + len(job.data or "") for job in jobs) > MOST_BYTES:
        raise ConfigurationError("what should follow is too much")
    return jobs


def _job(plain: object) -> NewJob:
    if not isinstance(plain, Mapping) or not plain.keys() <= _USUAL.keys() or "kind" not in plain:
        raise ConfigurationError("what should follow is no job")
    return NewJob(**{name: _field(name, value) for name, value in plain.items()})


def _field(name: str, value: object) -> Any:
    if name in _NUMBERS:
        wanted: tuple[type, ...] = (int,)
    elif name in _SPANS:
        wanted = (int, float)
    else:
        wanted = (str,)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise ConfigurationError(f"{name} of a job that should follow is {type(value).__name__}")
    if isinstance(value, str) and name in _MOMENTS:
        return datetime.fromisoformat(value)
    if isinstance(value, (int, float)) and name in _SPANS:
        return timedelta(seconds=value)
    return value
