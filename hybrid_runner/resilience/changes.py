"""What changes in an AdaptiveScheduler, and its lines in the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from hybrid_runner.display import one_line
from hybrid_runner.durations import duration_text
from hybrid_runner.errors import RunnerError
from hybrid_runner.resilience.breaker import BreakerMode
from hybrid_runner.resilience.log_events import SchedulerEvent, log_event

log = logging.getLogger("hybrid_runner.resilience")

_LONGEST = 1000
"""Characters of a line: messages of errors are anybody's."""

What = Literal[
    "scheduled",
    "failing",
    "recovered",
    "reset",
    "breaker",
    "interval",
    "stop_ignored",
    "paused",
    "resumed",
    "closed",
]


@dataclass(frozen=True, slots=True)
class Change:
    """Of one loop, or of all."""

    what: What
    at: datetime
    name: str = ""
    """Of the loop; empty if it is about all of them."""
    failures: int = 0
    """In a row; of a recovery, how many there were."""
    pause: timedelta = timedelta(0)
    """From the end of one run to the next."""
    breaker: BreakerMode = "closed"
    error: BaseException | None = None
    """What the run raised; None if it returned False."""


class _Line(NamedTuple):
    event: SchedulerEvent
    level: int
    text: str


_LINES: dict[What, _Line] = {
    "scheduled": _Line("scheduler.scheduled", logging.DEBUG, "{name} runs every {pause}"),
    "failing": _Line(
        "scheduler.failing",
        logging.WARNING,
        "{name} failed, {failures} in a row: {why}; again in {pause}",
    ),
    "recovered": _Line(
        "scheduler.recovered",
        logging.INFO,
        "{name} works again after {failures} failures; it runs every {pause}",
    ),
    "reset": _Line(
        "scheduler.reset", logging.INFO, "the failures of {name} are forgotten; again in {pause}"
    ),
    "breaker": _Line(
        "scheduler.breaker", logging.WARNING, "the breaker of {name} is {breaker} now"
    ),
    "interval": _Line("scheduler.interval", logging.DEBUG, "{name} runs every {pause} now"),
    "stop_ignored": _Line(
        "scheduler.stop_ignored",
        logging.WARNING,
        "{name} was cancelled and goes on all the same: it is not run again before it has ended",
    ),
    "paused": _Line("scheduler.paused", logging.INFO, "all loops are paused"),
    "resumed": _Line("scheduler.resumed", logging.INFO, "all loops are resumed"),
    "closed": _Line("scheduler.closed", logging.DEBUG, "all loops are closed"),
}


def log_change(change: Change) -> None:
    """One line: a warning for what works no longer, debug for what belongs to a usual day."""
    line, error, fields = _LINES[change.what], change.error, dict[str, object]()
    if change.name:
        fields = {"loop": change.name, "failures": change.failures, "breaker": change.breaker}
    is_foreseen = error is None or isinstance(error, (RunnerError, TimeoutError))
    is_first = change.what == "failing" and change.failures == 1
    text = line.text.format(
        name=change.name,
        failures=change.failures,
        pause=duration_text(change.pause),
        breaker=change.breaker.replace("_", "-"),
        why="it returned False" if error is None else f"{type(error).__name__}: {error}",
    )
    is_relief = change.what == "breaker" and change.breaker != "open"
    log.log(
        logging.INFO if is_relief else line.level,
        "%s",
        one_line(text[:_LONGEST]),
        exc_info=error if is_first and not is_foreseen else None,
        extra=log_event(line.event, **fields),
    )
