"""Every metric that a worker exports, declared once; tests hold /metrics, OTLP, docs/metrics.md,
dashboards and alerts against this table.

The values of all labels come from small sets: queues and kinds that workers know, and words of
ours. Beyond MOST_SERIES combinations of one instrument, new ones are counted together under
`(other)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

MOST_SERIES: Final = 1000
OTHER: Final = "(other)"
"""The value of every label for combinations beyond MOST_SERIES."""


class Kind(Enum):
    """The type of a metric, by its name in Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Merge(Enum):
    """How the values of several processes become one."""

    SUM = "sum"
    HIGHEST = "highest"
    LOWEST = "lowest"


@dataclass(frozen=True, slots=True)
class Instrument:
    """The declaration of one metric."""

    name: str
    kind: Kind
    unit: str
    """UCUM, as OTLP wants it: s, or a {thing}. Without a unit "", not 1: collectors add `_ratio` to
    the name then.
    """
    labels: tuple[str, ...]
    help: str
    requirement: str
    bounds: tuple[float, ...] = ()
    merge: Merge = Merge.SUM


FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds in seconds for what usually takes milliseconds."""
LONG: Final = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
)
"""Bounds in seconds for handlers, and for jobs that wait."""
SIZES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Bounds for the number of jobs in a batch."""


def _counter(
    name: str, unit: str, labels: tuple[str, ...], text: str, requirement: str
) -> Instrument:
    return Instrument(f"hybrid_runner_{name}_total", Kind.COUNTER, unit, labels, text, requirement)


def _gauge(
    name: str,
    unit: str,
    labels: tuple[str, ...],
    text: str,
    requirement: str,
    merge: Merge = Merge.SUM,
) -> Instrument:
    return Instrument(
        f"hybrid_runner_{name}", Kind.GAUGE, unit, labels, text, requirement, merge=merge
    )


def _histogram(
    name: str,
    unit: str,
    labels: tuple[str, ...],
    text: str,
    requirement: str,
    bounds: tuple[float, ...],
) -> Instrument:
    return Instrument(
        f"hybrid_runner_{name}", Kind.HISTOGRAM, unit, labels, text, requirement, bounds
    )


# --- looking for jobs

POLLS = _counter("polls", "{poll}", ("queue",), "Fallback polls.", "A10")
LOOKS = _counter(
    "looks",
    "{look}",
    ("queue", "way", "outcome"),
    "Looks for due jobs, by what caused them (way) and by what came of them (outcome: found or"
    " empty).",
    "A10",
)
LOOK_ERRORS = _counter(
    "look_errors",
    "{look}",
    ("queue",),
    "Looks that failed: Postgres was away, or refused them.",
    "A10",
)
CONSECUTIVE_ERRORS = _gauge(
    "consecutive_errors",
    "{look}",
    ("queue",),
    "Failed looks in a row; 0 after one that succeeds.",
    "A10",
    Merge.HIGHEST,
)
CONSECUTIVE_EMPTY_POLLS = _gauge(
    "consecutive_empty_polls",
    "{poll}",
    ("queue",),
    "Fallback polls in a row that found nothing.",
    "A10",
    Merge.HIGHEST,
)
CLAIM_DURATION = _histogram(
    "claim_duration_seconds",
    "s",
    ("queue",),
    "How long Postgres took to answer a look.",
    "A10",
    FAST,
)
CLAIM_BATCH = _histogram(
    "claim_batch_jobs", "{job}", ("queue",), "Jobs that one look found.", "A10", SIZES
)
SWEEP_DURATION = _histogram(
    "sweep_duration_seconds",
    "s",
    ("queue",),
    "How long Postgres took to answer a sweep: a look from the start of all lanes.",
    "A3",
    FAST,
)
PICKUP = _histogram(
    "pickup_seconds",
    "s",
    ("queue", "way"),
    "From when a job was due until it was claimed, by the way that found it.",
    "A1",
    LONG,
)
MISSED_RINGS = _counter(
    "missed_rings", "{job}", ("queue",), "Jobs that a sweep found although a ring was due.", "A3"
)

# --- rings

RINGS = _counter(
    "rings",
    "{ring}",
    ("queue",),
    "Rings that were heard on the queue's channel, whatever they asked for.",
    "A1",
)
DOORBELL_MODE = _gauge(
    "doorbell_mode",
    "{worker}",
    ("queue", "mode"),
    "Worker processes in this mode of the doorbell: deaf, falling, asleep, awake or full.",
    "A3",
)
HEARING = _gauge(
    "hearing",
    "",
    (),
    "1 while rings arrive, 0 while jobs are found by polling alone.",
    "A3",
    Merge.LOWEST,
)
LISTENER_RECONNECTS = _counter(
    "listener_reconnects", "{connection}", (), "Connections that listened and were lost.", "A3"
)

# --- running

SLOTS = _gauge("slots", "{job}", ("queue",), "Jobs that may run at a time.", "A13")
RUNNING = _gauge("running", "{job}", ("queue",), "Jobs that run now.", "A13")
RUN_DURATION = _histogram(
    "run_duration_seconds",
    "s",
    ("kind", "outcome"),
    "How long attempts ran, by what became of them: completed, failed, cancelled, retry, snooze or"
    " release.",
    "A10",
    LONG,
)
RETRIES = _counter(
    "retries", "{job}", ("queue", "kind"), "Jobs that were put back to be tried again.", "D8"
)
SNOOZES = _counter("snoozes", "{job}", ("queue", "kind"), "Jobs that delayed themselves.", "B4")
RELEASES = _counter(
    "releases",
    "{job}",
    ("queue", "kind"),
    "Jobs that were put back because their worker stopped.",
    "D6",
)
RESCUES = _counter(
    "rescues",
    "{job}",
    ("queue", "outcome"),
    "Jobs of dead workers that were rescued, by what became of them: retry, failed or cancelled.",
    "D5",
)

# --- settling

SETTLE_LAG = _histogram(
    "settle_lag_seconds",
    "s",
    ("queue",),
    "From the end of an attempt until Postgres had its outcome.",
    "A10",
    FAST,
)
SETTLE_DURATION = _histogram(
    "settle_duration_seconds",
    "s",
    (),
    "How long Postgres took to write one batch of outcomes.",
    "A10",
    FAST,
)
SETTLE_BATCH = _histogram("settle_batch_jobs", "{job}", (), "Outcomes of one batch.", "A10", SIZES)
PENDING_SETTLEMENTS = _gauge(
    "pending_settlements", "{job}", (), "Outcomes that Postgres does not have yet.", "A10"
)
STALE_SETTLES = _counter(
    "stale_settles",
    "{job}",
    ("queue",),
    "Outcomes that came too late: another claim had the job by then.",
    "A4",
)

# --- the process

WORKERS = _gauge(
    "workers", "{worker}", (), "Worker processes behind this page that have started.", "F6"
)
PROCESS_RESTARTS = _counter(
    "process_restarts",
    "{process}",
    (),
    "Worker processes that died and were started again (`worker --processes`).",
    "F6",
)
LOOP_LAG = _histogram(
    "loop_lag_seconds",
    "s",
    (),
    "How late the event loop ran a callback that was due at once; measured about once a second.",
    "A13",
    FAST,
)
STALLS = _counter(
    "stalls",
    "{stall}",
    (),
    "How often a handler held up the event loop for longer than `stall_after`.",
    "A13",
)
STALLED = _gauge(
    "stalled", "{worker}", (), "Worker processes whose event loop is held up now.", "A13"
)
SPANS_DROPPED = _counter(
    "spans_dropped", "{span}", (), "Spans that were never delivered to a collector.", "F4"
)
INFO = _gauge(
    "info", "", ("version",), "Always 1; the version is in the label.", "F6", Merge.HIGHEST
)

# --- the queues as Postgres has them: exported by one worker of the fleet at a time, so read them
# with max by (queue, …)

QUEUE_JOBS = _gauge(
    "queue_jobs",
    "{job}",
    ("queue", "state"),
    "Live jobs by state: due, scheduled (due later) or running; due and scheduled are exact up to"
    " 10,000, above that estimated; running is what the workers' heartbeats said.",
    "D8",
    Merge.HIGHEST,
)
QUEUE_OLDEST_DUE = _gauge(
    "queue_oldest_due_seconds",
    "s",
    ("queue",),
    "How long the oldest due job has been due; 0 if there is none.",
    "D8",
    Merge.HIGHEST,
)
QUEUE_WORKERS = _gauge(
    "queue_workers",
    "{worker}",
    ("queue",),
    "Live workers that claim from the queue.",
    "D8",
    Merge.HIGHEST,
)
QUEUE_PAUSED = _gauge(
    "queue_paused", "", ("queue",), "1 while nobody may claim from the queue.", "D8", Merge.HIGHEST
)
HORIZON_AGE = _gauge(
    "horizon_age_seconds",
    "s",
    (),
    "For how long somebody has kept vacuum from cleaning up: a transaction, a replication slot or a"
    " standby.",
    "D8",
    Merge.HIGHEST,
)
NOTIFY_QUEUE_USED = _gauge(
    "notify_queue_used_ratio",
    "",
    (),
    "How full the server's queue of notifications is, from 0 to 1; from 0.5 on nobody rings.",
    "D8",
    Merge.HIGHEST,
)

INSTRUMENTS: Final = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Instrument)
)
"""All instruments, in this order."""

NAMED: Final = {instrument.name: instrument for instrument in INSTRUMENTS}
