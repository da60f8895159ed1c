"""The options of a schedule beside its name, kind and payload: one list for Python, the command
line and docs/schedules.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypedDict, get_type_hints

from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.schedules import Missed, Overlap


class ScheduleOptions(TypedDict, total=False):
    """Options of a schedule; None counts as not given."""

    cron: Annotated[
        str | None,
        "when, as five fields: minute hour day month weekday, such as `30 2 * * *`; or `@daily` and"
        " its like. Of `cron`, `every` and `at` one is given",
    ]
    every: Annotated[
        Duration | None,
        "how often, such as 10s or 1h; counted from `starts_at`, so it never drifts",
    ]
    at: Annotated[datetime | None, "once, such as 2030-01-31T08:00+01:00"]
    timezone: Annotated[
        str | None, "the zone that `cron` is read in, such as Europe/Berlin (default: UTC)"
    ]
    queue: Annotated[str | None, "the queue of its jobs (default: that of the kind's handler)"]
    priority: Annotated[int | None, "of its jobs: 0 (first) to 9 (default: 5)"]
    max_attempts: Annotated[
        int | None, "how often a job may be tried, at most as its handler says (default)"
    ]
    timeout: Annotated[
        Duration | None, "how long one attempt may take, at most as its handler says (default)"
    ]
    overlap: Annotated[
        Overlap | None,
        "what a tick does while the last job lives: `skip` (default), `queue` (one waits behind"
        " it), `allow`, or `replace` (cancel it)",
    ]
    missed: Annotated[
        Missed | None,
        "ticks that nobody could fire: `one` job for all of them (default), `all`, or `none`",
    ]
    catch_up: Annotated[
        Duration | None, "missed ticks that are older are dropped, and counted (default: 1d)"
    ]
    jitter: Annotated[
        Duration | None,
        "each job is due up to so long after its tick, by chance, but the same chance for the same"
        " tick (default: 0)",
    ]
    starts_at: Annotated[datetime | None, "no tick before this time"]
    ends_at: Annotated[datetime | None, "no tick after this time"]


NAMES = ScheduleOptions.__optional_keys__


def option_texts() -> dict[str, str]:
    """Each option of a schedule, and what it does."""
    hints = get_type_hints(ScheduleOptions, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None; ConfigurationError for a name that is none of these."""
    for name in options.keys() - NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        guess = f"did you mean {near[0]!r}?" if near else "see docs/schedules.md"
        raise ConfigurationError(f"a schedule has no option {name!r}: {guess}")
    return {name: value for name, value in options.items() if value is not None}
