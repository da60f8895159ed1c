"""Makes a schedule of the arguments of `app.schedule`; checks all that can be checked without
Postgres, which checks it again.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from hybrid_runner.display import one_line
from hybrid_runner.durations import Duration, parse_duration, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import NAME, JobKind
from hybrid_runner.handlers.new_jobs import Find, new_job
from hybrid_runner.handlers.schedule_options import given
from hybrid_runner.model.schedules import SHORTEST, DeclaredSchedule, Missed, Overlap
from hybrid_runner.policy.cron_text import check_cron

_OF_JOBS = ("queue", "priority", "max_attempts", "timeout")
_WHENS = ("cron", "every", "at")
_LONGEST_SHOWN = 60


def make_schedule(
    find: Find,
    name: object,
    kind: JobKind[Any, Any] | str,
    payload: Any,
    options: Mapping[str, Any],
) -> DeclaredSchedule:
    """The schedule; ConfigurationError says what is wrong, in one line that names it."""
    check_name(name)
    try:
        return _made(find, str(name), kind, payload, given(options))
    except ConfigurationError as error:
        raise ConfigurationError(f"schedule {name!r}: {error}") from None


def check_name(name: object) -> None:
    """ConfigurationError unless it can be the name of a schedule."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigurationError(
            f"{shown(name)} is not the name of a schedule: use 1 to 128 letters, digits and"
            " . _ : / -"
        )


def _made(
    find: Find, name: str, kind: JobKind[Any, Any] | str, payload: Any, chosen: Mapping[str, Any]
) -> DeclaredSchedule:
    of_jobs = {what: chosen[what] for what in _OF_JOBS if what in chosen}
    if "timeout" in of_jobs:
        of_jobs["timeout"] = parse_positive("timeout", of_jobs["timeout"])
    job = new_job(find, kind, payload, of_jobs)
    fields: dict[str, Any] = {
        "cron": check_cron(chosen["cron"]) if "cron" in chosen else None,
        "every": _duration("every", chosen.get("every"), SHORTEST),
        "at": _moment("at", chosen.get("at")),
        "starts_at": _moment("starts_at", chosen.get("starts_at")),
        "ends_at": _moment("ends_at", chosen.get("ends_at")),
        "timezone": _zone(chosen.get("timezone")),
        "overlap": _one_of("overlap", chosen.get("overlap"), typing.get_args(Overlap)),
        "missed": _one_of("missed", chosen.get("missed"), typing.get_args(Missed)),
        "catch_up": _duration("catch_up", chosen.get("catch_up"), timedelta(0)),
        "jitter": _duration("jitter", chosen.get("jitter"), timedelta(0)),
    }
    _check_when([what for what in _WHENS if fields[what] is not None])
    starts_at, ends_at = fields["starts_at"], fields["ends_at"]
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        raise ConfigurationError("ends_at must be after starts_at")
    return DeclaredSchedule(
        name,
        job.kind,
        job.payload,
        queue=chosen.get("queue"),
        priority=job.priority,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        **{what: value for what, value in fields.items() if value is not None},
    )


def _check_when(whens: Sequence[str]) -> None:
    if len(whens) != 1:
        what = " and ".join(whens) or "none"
        raise ConfigurationError(f"give one of cron, every and at, not {what}")


def _duration(what: str, value: Duration | None, least: timedelta) -> timedelta | None:
    if value is None:
        return None
    try:
        length = parse_duration(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{what}: {error}") from None
    if length < least:
        raise ConfigurationError(f"{what} must be 1 s to ten years, not {shown(value)}")
    return length


def _moment(what: str, moment: object) -> datetime | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ConfigurationError(
            f"{what} must be a datetime with a time zone: use datetime.now(UTC) or .astimezone()"
        )
    if not 1970 < moment.year < 9999:
        raise ConfigurationError(f"{what} must be a time of the years 1971 to 9998")
    return moment


def _zone(zone: object) -> str | None:
    if zone is not None and (not isinstance(zone, str) or not 1 <= len(zone) <= 64):
        raise ConfigurationError(
            f"timezone must be the name of a zone, such as 'Europe/Berlin', not {shown(zone)}"
        )
    return zone


def _one_of(what: str, value: object, words: Sequence[str]) -> str | None:
    if value is None or (isinstance(value, str) and value in words):
        return value
    named = f"{', '.join(words[:-1])} or {words[-1]}"
    raise ConfigurationError(f"{what} must be {named}, not {shown(value)}")


def shown(value: object) -> str:
    """What was given, short and on one line."""
    text = one_line(str(value))
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
