"""Durations as people write them: seconds as a number, "30s", "5m", "1h30m", or a timedelta."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from hybrid_runner.errors import ConfigurationError

Duration = timedelta | float | int | str

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")
_LONGEST = timedelta(days=3650)


def parse_duration(value: Duration) -> timedelta:
    """A timedelta between zero and ten years; ConfigurationError for anything else."""
    duration = _parse(value)
    if not timedelta(0) <= duration <= _LONGEST:
        raise ConfigurationError(f"duration {value!r} is out of range: use zero to ten years")
    return duration


def parse_optional(value: Duration | None) -> timedelta | None:
    """`parse_duration` of what may be absent."""
    return None if value is None else parse_duration(value)


def _parse(value: Duration) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        raise ConfigurationError(
            f"{value!r} is not a duration: use seconds (30), '30s', '5m', '1h' or a timedelta"
        )
    if isinstance(value, (int, float)):
        return _from_seconds(float(value))
    if not isinstance(value, str):
        raise ConfigurationError(
            f"{value!r} is not a duration: use seconds (30), '30s', '5m', '1h' or a timedelta"
        )
    text = value.strip()
    try:
        return _from_seconds(float(text))
    except ValueError:
        pass
    if not _WHOLE.fullmatch(text):
        raise ConfigurationError(
            f"{value!r} is not a duration: use seconds (30), '30s', '5m', '1h' or a timedelta"
        )
    return _from_seconds(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def _from_seconds(seconds: float) -> timedelta:
    if not math.isfinite(seconds) or abs(seconds) > _LONGEST.total_seconds():
        raise ConfigurationError(f"duration {seconds!r} is out of range: use zero to ten years")
    return timedelta(seconds=seconds)
