"""What changes in an AdaptiveScheduler, and its lines in the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from hybrid_runner.durations import duration_text
from hybrid_runner.errors import RunnerError
from hybrid_runner.resilience.breaker import BreakerMode
from hybrid_runner.resilience.log_events import SchedulerEvent, log_event

log = logging.getLogger("hybrid_runner.resilience")

What = Literal[
    "scheduled",
    "failing",
    "recovered",
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
    name: str | None = None
    """Of the loop; None if it is about all of them."""
    failures: int = 0
    multiplier: float = 1.0
    interval: timedelta | None = None
    """As it is now, before it is multiplied."""
    breaker: BreakerMode = "closed"
    error: BaseException | None = None
    """What the run raised; None if it returned False."""
