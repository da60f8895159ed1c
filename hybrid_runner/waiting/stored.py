"""How the numbers of these values are written into a job's memory, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from hybrid_runner.durations import LONGEST, Duration, parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.waiting.backoff import Backoff

MOST = 1_000_000
"""The highest count that one of them may be given."""


def check_count(what: str, count: object, least: int = 1) -> int:
    """A number that counts something; ConfigurationError when it cannot."""
    if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= MOST:
        raise ConfigurationError(f"{what} must be {least} to {MOST:,}, not {count!r}")
    return count


def check_span(what: str, span: Duration) -> timedelta:
    """A duration; ConfigurationError names the argument."""
    try:
        return parse_duration(span)
    except ConfigurationError as error:
        raise ConfigurationError(f"{what}: {error}") from None


def exact(pace: Backoff) -> Backoff:
    """The same pace, equal to what is read of its stored numbers."""
    base, cap = parse_duration(pace.base), parse_duration(pace.cap)
    return Backoff(base, cap, float(pace.factor), float(pace.jitter))


def _read_backoff(stored: Any) -> Backoff:
    if isinstance(stored, Backoff):
        return exact(stored)
    if not isinstance(stored, Mapping):
        raise ValueError("it must be an object of base, cap, factor and jitter")  # noqa: TRY004  # pydantic names the field
    try:
        pace = Backoff(
            stored["base"], stored["cap"], stored.get("factor", 2), stored.get("jitter", 0.2)
        )
        return exact(pace)
    except KeyError as error:
        raise ValueError(f"{error.args[0]} is missing") from None
    except (ConfigurationError, TypeError, ValueError) as error:
        raise ValueError(str(error)) from None


def _write_backoff(pace: Backoff) -> dict[str, float]:
    return {
        "base": parse_duration(pace.base).total_seconds(),
        "cap": parse_duration(pace.cap).total_seconds(),
        "factor": pace.factor,
        "jitter": pace.jitter,
    }


_NUMBER = {"type": "number"}
IN_SECONDS = ConfigDict(ser_json_timedelta="float")
"""For classes with durations."""
Span = Annotated[timedelta, Field(ge=timedelta(0), le=LONGEST), WithJsonSchema(_NUMBER)]
"""A duration, stored as seconds."""
StoredBackoff = Annotated[
    Backoff,
    BeforeValidator(_read_backoff),
    PlainSerializer(_write_backoff),
    WithJsonSchema(
        {
            "type": "object",
            "properties": dict.fromkeys(("base", "cap", "factor", "jitter"), _NUMBER),
            "required": ["base", "cap"],
        }
    ),
]
"""A pace, stored as its four numbers."""
