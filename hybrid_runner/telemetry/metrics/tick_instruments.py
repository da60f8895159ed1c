"""The metrics about schedules; part of the table in instruments.py."""

from __future__ import annotations

from typing import Final

from hybrid_runner.telemetry.metrics.instrument import (
    LONG,
    Instrument,
    Merge,
    counter,
    gauge,
    histogram,
)

TICKS = counter(
    "ticks",
    "{tick}",
    ("schedule", "outcome"),
    "Ticks of schedules that this worker saw to, by what came of them: fired; caught_up, a job was"
    " made later for ticks that nobody could fire; skipped, the job before still lived; dropped,"
    " too old to be made up for.",
    "D8",
)
TICK_LATE = histogram(
    "tick_late_seconds",
    "s",
    (),
    "From a tick until its job was made; what was caught up is not in it.",
    "D8",
    LONG,
)

# What one worker of the fleet measures for all: read with max.

SCHEDULES = gauge(
    "schedules",
    "{schedule}",
    ("state",),
    "Schedules by state: active, paused, or undeclared (declared in code, and by no live worker).",
    "D8",
    Merge.HIGHEST,
)
SCHEDULE_NEXT = gauge(
    "schedule_next_seconds",
    "s",
    (),
    "Until the earliest tick of all active schedules; below 0: it is late. No series: there is"
    " none.",
    "D8",
    Merge.LOWEST,
)
SCHEDULES_OVERDUE = gauge(
    "schedules_overdue",
    "{schedule}",
    (),
    "Active schedules whose tick has been due for a minute, and nobody fired it.",
    "D8",
    Merge.HIGHEST,
)

INSTRUMENTS: Final = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Instrument)
)
