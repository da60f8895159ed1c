"""Durations as people write them: seconds as a number, "30s", "5m", "1h30m", or a timedelta."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from hybrid_runner.errors import ConfigurationError


class _OutOfRange(ConfigurationError):
    """It is a duration, and too long or negative."""


Duration = timedelta | float | int | str

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")
LONGEST = timedelta(days=3650)
"""No duration is longer: ten years."""
_LONGEST_SHOWN = 60


def parse_duration(value: Duration) -> timedelta:
    """A timedelta between zero and ten years; ConfigurationError for anything else."""
    try:
        return _in_range(value)
    except _OutOfRange as error:
        raise ConfigurationError(str(error)) from None


def _in_range(value: Duration) -> timedelta:
    duration = _parse(value)
    if not timedelta(0) <= duration <= LONGEST:
        raise _OutOfRange(f"duration {_shown(value)} is out of range: use zero to ten years")
    return duration


def parse_positive(name: str, value: Duration) -> timedelta:
    """`parse_duration` of a duration called `name`, which must not be zero."""
    try:
        duration = _in_range(value)
    except _OutOfRange:
        duration = timedelta(0)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from None
    if not duration:
        raise ConfigurationError(f"{name} must be more than zero and at most ten years")
    return duration


def parse_named(name: str, value: Duration | None) -> timedelta | None:
    """`parse_optional` of a duration called `name`."""
    try:
        return parse_optional(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from None


def parse_optional(value: Duration | None) -> timedelta | None:
    """`parse_duration` of what may be absent."""
    return None if value is None else parse_duration(value)


def _parse(value: Duration) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        raise ConfigurationError(
            f"{_shown(value)} is not a duration: use seconds (30), '30s', '5m', '1h' or a timedelta"
        )
    if isinstance(value, (int, float)):
        try:
            return _from_seconds(float(value))
        except OverflowError:
            return _from_seconds(math.inf)
    if not isinstance(value, str):
        raise ConfigurationError(
            f"{_shown(value)} is not a duration: use seconds (30), '30s', '5m', '1h' or a timedelta"
        )
    text = value.strip()
    try:
        return _from_seconds(float(text))
    except ValueError:
        pass
    if not _WHOLE.fullmatch(text):
        raise ConfigurationError(
            f"{_shown(value)} is not a duration: use seconds (30), '30s', '5m', '1h' or a timedelta"
        )
    return _from_seconds(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def _shown(value: object) -> str:
    """Short, whatever was given."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _from_seconds(seconds: float) -> timedelta:
    if not math.isfinite(seconds) or abs(seconds) > LONGEST.total_seconds():
        raise _OutOfRange(f"duration {seconds!r} is out of range: use zero to ten years")
    return timedelta(seconds=seconds)


def duration_text(duration: timedelta) -> str:
    """As people write it: 29m, 1h30m, 1.5s."""
    seconds = duration.total_seconds()
    if seconds < 60:
        return f"{round(seconds, 3):g}s"
    whole, parts = round(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
