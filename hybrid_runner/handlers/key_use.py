"""What a call does with the keys of its jobs: checked here as sql/functions/enqueue_job.sql checks
it, in the same words.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple, get_args

from hybrid_runner.durations import Duration, parse_named, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.jobs import NO_LIMITS, KeyLimits, NewJob, OnConflict

WORDS: tuple[OnConflict, ...] = get_args(OnConflict)
MOST_ITEMS = 100_000
"""Of one job that collects."""
LONGEST_UNIQUE = timedelta(days=366)
LONGEST_FOLLOWED_KEY = 511
"""Bytes: the key of a job that waits for another one's end has one more."""

_PUT_OFF: tuple[OnConflict, ...] = ("replace", "follow", "collect")
_LEFT_ALONE: tuple[OnConflict, ...] = ("exists", "error")
_WAITING: tuple[OnConflict, ...] = ("follow", "collect")


class KeyUse(NamedTuple):
    """Of all jobs of one call."""

    on_conflict: OnConflict
    limits: KeyLimits

    @property
    def collects(self) -> bool:
        """Whether a payload is a list of items, or one of them."""
        return self.on_conflict == "collect"


PLAIN_USE = KeyUse("exists", NO_LIMITS)


def take_key_use(options: dict[str, Any]) -> KeyUse:
    """Take what is about keys out of the options of a call."""
    on_conflict = options.pop("on_conflict", "exists")
    if on_conflict not in WORDS:
        said = ", ".join(map(repr, WORDS[:-1]))
        raise ConfigurationError(
            f"on_conflict must be {said} or {WORDS[-1]!r}, not {str(on_conflict)[:60]!r}"
        )
    limits = KeyLimits(
        _duration("max_wait", options.pop("max_wait", None)),
        _unique_for(options.pop("unique_for", None)),
        options.pop("max_items", None),
    )
    _check_limits(on_conflict, limits)
    return KeyUse(on_conflict, limits)


def check_key_use(use: KeyUse, job: NewJob, key: str | None) -> None:
    """ConfigurationError if a job with this key cannot be stored like that."""
    on_conflict, limits = use
    if key is None and on_conflict in _WAITING:
        raise ConfigurationError(f"{on_conflict} needs a key")
    if key is None and limits.unique_for is not None:
        raise ConfigurationError("unique_for needs a key")
    is_put_off = job.delay is not None or job.run_at is not None
    if limits.max_wait is not None and (key is None or not is_put_off):
        raise ConfigurationError("max_wait needs a key and a delay")
    if key is not None and on_conflict in _WAITING:
        size = len(key.encode())
        if size > LONGEST_FOLLOWED_KEY:
            raise ConfigurationError(
                f"a key for follow or collect is at most {LONGEST_FOLLOWED_KEY} bytes, not {size}"
            )


def _check_limits(on_conflict: OnConflict, limits: KeyLimits) -> None:
    max_wait, unique_for, max_items = limits
    if max_wait is not None and on_conflict not in _PUT_OFF:
        raise ConfigurationError(
            f"max_wait goes with on_conflict replace, follow or collect, not {on_conflict}"
        )
    if unique_for is not None and on_conflict not in _LEFT_ALONE:
        raise ConfigurationError(
            f"unique_for goes with on_conflict exists or error, not {on_conflict}: it would drop"
            " the last event"
        )
    if max_items is None:
        return
    if on_conflict != "collect":
        raise ConfigurationError(f"max_items goes with on_conflict collect, not {on_conflict}")
    if type(max_items) is not int or not 1 <= max_items <= MOST_ITEMS:
        raise ConfigurationError(f"max_items must be 1 to {MOST_ITEMS}, not {max_items!r}")


def _unique_for(value: Duration | None) -> timedelta | None:
    duration = parse_named("unique_for", value)
    if duration is not None and not timedelta(0) < duration <= LONGEST_UNIQUE:
        raise ConfigurationError("unique_for must be more than zero and at most 366 days")
    return duration


def _duration(name: str, value: Duration | None) -> timedelta | None:
    return None if value is None else parse_positive(name, value)
