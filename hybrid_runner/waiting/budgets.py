"""What budgets can be: the same for a handler, for `enqueue` and in SQL."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.durations import parse_positive
from hybrid_runner.errors import ConfigurationError

_MOST_SNOOZES = 2**31 - 1


def check_budgets(
    max_snoozes: object, max_duration: timedelta | None, finish_within: timedelta | None
) -> None:
    """ConfigurationError for a budget that cannot be; sql/functions/enqueue_job.sql says the
    same.
    """
    if max_snoozes is not None and not _is_number(max_snoozes):
        raise ConfigurationError(f"max_snoozes must be 0 to {_MOST_SNOOZES}, not {max_snoozes!r}")
    for name, budget in (("max_duration", max_duration), ("finish_within", finish_within)):
        if budget is not None:
            parse_positive(name, budget)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_SNOOZES
