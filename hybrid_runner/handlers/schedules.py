"""Makes a schedule of the arguments of `app.schedule`; checks what can be checked without Postgres,
which says the rest as a worker starts: what the fields of `cron` mean, and which zones there are.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from hybrid_runner.durations import LONGEST
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.new_jobs import Find, new_job
from hybrid_runner.handlers.schedule_checks import (
    check_cron,
    check_interval,
    check_moment,
    check_name,
    check_word,
    check_zone,
    interval_text,
    shown,
)
from hybrid_runner.handlers.schedule_options import given
from hybrid_runner.model.schedules import SHORTEST, DeclaredSchedule, Missed, Overlap

_OF_JOBS = ("queue", "priority", "max_attempts", "timeout")
_WHENS = ("cron", "every", "at")
_NONE = timedelta(0)
_LEAST = timedelta(microseconds=1)


def make_schedule(
    find: Find,
    name: object,
    kind: JobKind[Any, Any] | str,
    payload: Any,
    options: Mapping[str, Any],
) -> DeclaredSchedule:
    """The schedule; ConfigurationError says what is wrong, in one line that names it."""
    try:
        check_name("name", name, 128)
        return _made(find, str(name), kind, payload, given(options))
    except ConfigurationError as error:
        raise ConfigurationError(f"schedule {shown(name)}: {error}") from None


def check_schedule_name(name: object) -> None:
    """ConfigurationError unless it can be the name of a schedule."""
    try:
        check_name("name", name, 128)
    except ConfigurationError as error:
        raise ConfigurationError(f"schedule {shown(name)}: {error}") from None


def _made(
    find: Find, name: str, kind: JobKind[Any, Any] | str, payload: Any, chosen: Mapping[str, Any]
) -> DeclaredSchedule:
    if isinstance(kind, str):
        check_name("kind", kind, 128)
    if "queue" in chosen:
        check_name("queue", chosen["queue"], 48)
    whens = [what for what in _WHENS if what in chosen]
    if len(whens) != 1:
        what = " and ".join(whens) or "none"
        raise ConfigurationError(f"give one of cron, every and at, not {what}")
    times = _times(chosen)
    of_jobs = {what: chosen[what] for what in _OF_JOBS if what in chosen}
    if "timeout" in of_jobs:
        of_jobs["timeout"] = check_interval(
            "timeout", chosen["timeout"], _LEAST, LONGEST, "more than zero and at most ten years"
        )
    job = new_job(find, kind, payload, of_jobs)
    return DeclaredSchedule(
        name,
        job.kind,
        job.payload,
        queue=chosen.get("queue"),
        priority=job.priority,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        **{what: value for what, value in times.items() if value is not None},
    )


def _times(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say when, checked."""
    if "cron" in chosen:
        check_cron(chosen["cron"])
    check_zone(chosen.get("timezone", "UTC"))
    _check_words(chosen)
    times: dict[str, Any] = {
        **{what: chosen.get(what) for what in ("cron", "timezone", "overlap", "missed")},
        "every": check_interval(
            "every", chosen.get("every"), SHORTEST, LONGEST, "1 second to ten years"
        ),
        "catch_up": check_interval(
            "catch_up", chosen.get("catch_up"), _NONE, timedelta(days=366), "zero to 366 days"
        ),
        "jitter": check_interval(
            "jitter", chosen.get("jitter"), _NONE, timedelta(days=1), "zero to a day"
        ),
        **{what: check_moment(what, chosen.get(what)) for what in ("at", "starts_at", "ends_at")},
    }
    every, jitter = times["every"], times["jitter"]
    if every is not None and jitter is not None and jitter > every:
        raise ConfigurationError(
            f"jitter must not be more than every, which is {interval_text(every)}"
        )
    starts_at, ends_at = times["starts_at"], times["ends_at"]
    if times["at"] is not None and (starts_at is not None or ends_at is not None):
        raise ConfigurationError("at is one time: it goes without starts_at and ends_at")
    if starts_at is not None and ends_at is not None and ends_at < starts_at:
        raise ConfigurationError("ends_at must not be before starts_at")
    return times


def _check_words(chosen: Mapping[str, Any]) -> None:
    allowed: Sequence[tuple[str, Any]] = (("overlap", Overlap), ("missed", Missed))
    for what, words in allowed:
        if what in chosen:
            check_word(what, chosen[what], typing.get_args(words))
    overlap = chosen.get("overlap", "skip")
    if chosen.get("missed") == "all" and overlap not in ("queue", "allow"):
        raise ConfigurationError(
            f"missed all goes with overlap queue or allow: with {overlap} all but one would be lost"
        )
