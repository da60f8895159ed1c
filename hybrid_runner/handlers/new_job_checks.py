"""What can be checked of a new job without Postgres; each raises ConfigurationError."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from pydantic import ValidationError

from hybrid_runner.durations import parse_optional
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.json_type import explain
from hybrid_runner.handlers.kind import NAME, JobKind, check_queue
from hybrid_runner.jsontext import NotStorable, check, printable
from hybrid_runner.model.jobs import LARGEST_JOB, NewJob
from hybrid_runner.telemetry.tracing.trace_ids import parse
from hybrid_runner.waiting.budgets import check_budgets

MOST_FOLLOW_UPS = 1000
"""Jobs that may follow one attempt."""
MOST_BYTES = LARGEST_JOB
"""Bytes of their payloads and data together."""
_LONGEST_SHOWN = 60


def check_fields(job: NewJob) -> None:
    """Check all fields but the payload."""
    _check_names(job.kind, job.queue or "default")
    check_key(job.key)
    _check_number("priority", job.priority, 0, 9)
    _check_number("max_attempts", job.max_attempts, 1, 1000)
    _check_type("delay", job.delay, timedelta)
    _check_type("timeout", job.timeout, timedelta)
    _check_type("max_duration", job.max_duration, timedelta)
    _check_type("finish_within", job.finish_within, timedelta)
    _check_type("data", job.data, str)
    check_budgets(job.max_snoozes, job.max_duration, job.finish_within)
    if job.timeout is not None and job.timeout <= timedelta(0):
        raise ConfigurationError("timeout must be more than zero")
    _check_moment("run_at", job.run_at)
    _check_moment("finish_by", job.finish_by)
    _check_moment("start_by", job.start_by)
    if job.run_at is not None and job.delay is not None:
        raise ConfigurationError("give run_at or delay, not both")
    if job.run_at is not None and job.start_by is not None and job.start_by < job.run_at:
        raise ConfigurationError("start_by is before run_at: it could never begin")


@lru_cache(maxsize=1024)
def _check_names(kind: str, queue: str) -> None:
    check_kind(kind)
    check_queue(queue)


def check_kind(kind: str) -> None:
    if not NAME.fullmatch(kind):
        raise ConfigurationError(
            f"{kind[:60]!r} is not a kind: use 1 to 128 letters, digits and . _ : / -"
        )


def check_key(key: object) -> None:
    if key is None:
        return
    if not isinstance(key, str) or not 1 <= bytes_of(key) <= 512 or not _is_text(key):
        raise ConfigurationError(
            "key must be a text of 1 to 512 bytes, without NUL or halves of signs"
        )
    if key.startswith(">"):
        raise ConfigurationError(
            "key must not start with >: that is how a job waits for another one's key"
        )


def _is_text(text: str) -> bool:
    """Whether Postgres can hold it."""
    return "\x00" not in text and (text.isascii() or printable(text) == text)


def _check_number(what: str, number: object, low: int, high: int) -> None:
    if number is not None and not (isinstance(number, int) and low <= number <= high):
        given = repr(number)
        short = given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}…"
        raise ConfigurationError(f"{what} must be {low} to {high}, not {short}")


def _check_type(what: str, value: object, wanted: type) -> None:
    if value is not None and not isinstance(value, wanted):
        raise ConfigurationError(
            f"{what} of a NewJob is a {wanted.__name__}, not {type(value).__name__}"
        )


def _check_moment(what: str, moment: object) -> None:
    if moment is not None and not (isinstance(moment, datetime) and moment.tzinfo is not None):
        raise ConfigurationError(
            f"{what} must be a datetime with a time zone: use datetime.now(UTC) or .astimezone()"
        )


def check_ranges(job: NewJob) -> None:
    """What Postgres would refuse, and with it the end of the job that this one follows."""
    for duration in (job.delay, job.timeout):
        parse_optional(duration)
    for moment in (job.run_at, job.finish_by, job.start_by):
        if moment is not None and not 1970 < moment.year < 9999:
            raise ConfigurationError(f"{job.kind}: {moment} is not between 1971 and 9998")
    if job.traceparent is not None and parse(job.traceparent) is None:
        raise ConfigurationError(f"{job.kind}: its traceparent is none of W3C's")


def check_has_data(known: JobKind[Any, Any] | None, data: str | None) -> None:
    """Its handler could not run without."""
    if known is None or known.memory is None or data is not None:
        return
    try:
        known.read_memory(None)
    except ValidationError as error:
        raise ConfigurationError(
            f"a job of {known.name} needs data=…, a {known.memory_type}: {explain(error, 'data')}"
        ) from None


def check_limits(
    known: JobKind[Any, Any], max_attempts: int | None, timeout: timedelta | None
) -> None:
    """A worker would cut them down without a word."""
    if known.limits == "default":
        return
    for what, asked, most in (
        ("max_attempts", max_attempts, known.max_attempts),
        ("timeout", timeout, known.timeout),
    ):
        if asked is not None and most is not None and asked > most:  # type: ignore[operator]
            raise ConfigurationError(
                f"kind {known.name!r} allows a {what} of {most} at most, not {asked}: raise it in"
                f' @app.job(…), or write limits="default" there'
            )


def not_storable(text: str, what: str = "the payload") -> str | None:
    try:
        check(text.encode(), what)
        orjson.loads(text)
    except (NotStorable, ValueError) as error:
        return str(error) if isinstance(error, NotStorable) else f"{what} is not JSON: {error}"
    return None


def bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def bytes_of_job(job: NewJob) -> int:
    """Of its payload and its data."""
    return bytes_of(job.payload) + bytes_of(job.data or "")


def check_may_follow(jobs: int, size: int) -> None:
    """ConfigurationError when so many jobs, of so many bytes, are too many for one attempt."""
    if jobs > MOST_FOLLOW_UPS or size > MOST_BYTES:
        raise ConfigurationError(
            f"more than {MOST_FOLLOW_UPS:,} jobs, or {MOST_BYTES:,} bytes of them, cannot"
            " follow one attempt: store them with enqueue_many"
        )
