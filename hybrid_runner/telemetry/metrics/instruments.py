"""Every metric that a worker exports, declared once; tests hold /metrics, OTLP, docs/metrics.md,
dashboards and alerts against this table.

The values of all labels come from small sets: queues and kinds that workers know, and words of
ours. Beyond MOST_SERIES combinations of one instrument, new ones are counted together under
`(other)`.
"""

from __future__ import annotations

from typing import Final

from hybrid_runner.telemetry.metrics import (
    monitor_instruments,
    row_instruments,
    tick_instruments,
)
from hybrid_runner.telemetry.metrics.instrument import (
    FAST,
    LONG,
    SIZES,
    Instrument,
    Merge,
    counter,
    gauge,
    histogram,
)

# --- looking for jobs

POLLS = counter("polls", "{poll}", ("queue",), "Fallback polls.", "A10")
LOOKS = counter(
    "looks",
    "{look}",
    ("queue", "way", "outcome"),
    "Looks for due jobs, by what caused them (way) and by what came of them (outcome: found or"
    " empty).",
    "A10",
)
LOOK_ERRORS = counter(
    "look_errors",
    "{look}",
    ("queue",),
    "Looks that failed: Postgres was away, or refused them.",
    "A10",
)
CONSECUTIVE_ERRORS = gauge(
    "consecutive_errors",
    "{look}",
    ("queue",),
    "Failed looks in a row; 0 after one that succeeds.",
    "A10",
    Merge.HIGHEST,
)
CONSECUTIVE_EMPTY_POLLS = gauge(
    "consecutive_empty_polls",
    "{poll}",
    ("queue",),
    "Fallback polls in a row that found nothing.",
    "A10",
    Merge.HIGHEST,
)
CLAIM_DURATION = histogram(
    "claim_duration_seconds",
    "s",
    ("queue",),
    "How long Postgres took to answer a look.",
    "A10",
    FAST,
)
CLAIM_BATCH = histogram(
    "claim_batch_jobs", "{job}", ("queue",), "Jobs that one look found.", "A10", SIZES
)
SWEEP_DURATION = histogram(
    "sweep_duration_seconds",
    "s",
    ("queue",),
    "How long Postgres took to answer a sweep: a look from the start of all lanes.",
    "A3",
    FAST,
)
PICKUP = histogram(
    "pickup_seconds",
    "s",
    ("queue", "way"),
    "From when a job was due until it was claimed, by the way that found it.",
    "A1",
    LONG,
)
MISSED_RINGS = counter(
    "missed_rings", "{job}", ("queue",), "Jobs that a sweep found although a ring was due.", "A3"
)

# --- rings

RINGS = counter(
    "rings",
    "{ring}",
    ("queue",),
    "Rings that were heard on the queue's channel, whatever they asked for.",
    "A1",
)
DOORBELL_MODE = gauge(
    "doorbell_mode",
    "{worker}",
    ("queue", "mode"),
    "Worker processes in this mode of the doorbell: deaf, falling, asleep, awake or full.",
    "A3",
)
HEARING = gauge(
    "hearing",
    "",
    (),
    "1 while rings arrive, 0 while jobs are found by polling alone.",
    "A3",
    Merge.LOWEST,
)
LISTENER_RECONNECTS = counter(
    "listener_reconnects", "{connection}", (), "Connections that listened and were lost.", "A3"
)

# --- running

SLOTS = gauge("slots", "{job}", ("queue",), "Jobs that may run at a time.", "A13")
RUNNING = gauge("running", "{job}", ("queue",), "Jobs that run now.", "A13")
RUN_DURATION = histogram(
    "run_duration_seconds",
    "s",
    ("kind", "outcome"),
    "How long attempts ran, by what became of them: completed, failed, cancelled, retry, snooze or"
    " release.",
    "A10",
    LONG,
)
RETRIES = counter(
    "retries", "{job}", ("queue", "kind"), "Jobs that were put back to be tried again.", "D8"
)
SNOOZES = counter("snoozes", "{job}", ("queue", "kind"), "Jobs that delayed themselves.", "B4")
RELEASES = counter(
    "releases",
    "{job}",
    ("queue", "kind"),
    "Jobs that were put back because their worker stopped.",
    "D6",
)
RESCUES = counter(
    "rescues",
    "{job}",
    ("queue", "outcome"),
    "Jobs of dead workers that were rescued, by what became of them: retry, failed or cancelled.",
    "D5",
)

EXPIRED_JOBS = counter(
    "expired_jobs",
    "{job}",
    ("queue",),
    "Jobs that were ended because their time was over and no live worker knew their kind.",
    "B5",
)

# --- waiting: what values in a job's memory did, by kind and the name of the field

GATES_OPENED = counter(
    "gates_opened",
    "{look}",
    ("kind", "field"),
    "Looks at which a `Gate` of the memory opened: probes, fallback checks.",
    "B14",
)
GATE_ENDINGS = counter(
    "gate_endings",
    "{job}",
    ("kind", "field"),
    "Jobs that completed at a look at which this `Gate` was the last to open: by a probe, or by the"
    " check behind it.",
    "B14",
)
CONFIRMATIONS = counter(
    "confirmations",
    "{look}",
    ("kind", "field", "outcome"),
    "What `Confirmations` of the memory took: seen, one more of those that are needed; confirmed,"
    " that was the last of them.",
    "B14",
)
TRIES = counter(
    "tries",
    "{look}",
    ("kind", "field", "outcome"),
    "What became of `Tries` of the memory: again, or used_up, none was left.",
    "B14",
)
BUDGETS_USED_UP = counter(
    "budgets_used_up",
    "{job}",
    ("kind", "budget"),
    "Jobs that failed because they had gone on for too long: max_snoozes, max_duration or"
    " finish_by.",
    "B14",
)
WAKES = counter(
    "wakes",
    "{attempt}",
    ("kind", "outcome"),
    "Attempts of jobs that had waited for a signal, by what woke them: signal or timeout.",
    "B14",
)
SIGNALS_DROPPED = counter(
    "signals_dropped",
    "{signal}",
    (),
    "Signals that no job was given in the seven days for which they are kept.",
    "B14",
)
RECONCILER_REPAIRS = counter(
    "reconciler_repairs",
    "{job}",
    ("reconciler",),
    "Jobs that a reconciler found missing and stored.",
    "B12",
)

# --- settling

SETTLE_LAG = histogram(
    "settle_lag_seconds",
    "s",
    ("queue",),
    "From the end of an attempt until Postgres had its outcome.",
    "A10",
    FAST,
)
SETTLE_DURATION = histogram(
    "settle_duration_seconds",
    "s",
    (),
    "How long Postgres took to write one batch of outcomes.",
    "A10",
    FAST,
)
SETTLE_BATCH = histogram("settle_batch_jobs", "{job}", (), "Outcomes of one batch.", "A10", SIZES)
PENDING_SETTLEMENTS = gauge(
    "pending_settlements", "{job}", (), "Outcomes that Postgres does not have yet.", "A10"
)
STALE_SETTLES = counter(
    "stale_settles",
    "{job}",
    ("queue",),
    "Outcomes that came too late: another claim had the job by then.",
    "A4",
)

# --- the process

WORKERS = gauge(
    "workers", "{worker}", (), "Worker processes behind this page that have started.", "F6"
)
PROCESS_RESTARTS = counter(
    "process_restarts",
    "{process}",
    (),
    "Worker processes that died and were started again (`worker --processes`).",
    "F6",
)
LOOP_LAG = histogram(
    "loop_lag_seconds",
    "s",
    (),
    "How late the event loop ran a callback that was due at once; measured about once a second.",
    "A13",
    FAST,
)
STALLS = counter(
    "stalls",
    "{stall}",
    (),
    "How often a handler held up the event loop for longer than `stall_after`.",
    "A13",
)
STALLED = gauge(
    "stalled", "{worker}", (), "Worker processes whose event loop is held up now.", "A13"
)
SPANS_DROPPED = counter(
    "spans_dropped", "{span}", (), "Spans that were never delivered to a collector.", "F4"
)
INFO = gauge(
    "info", "", ("version",), "Always 1; the version is in the label.", "F6", Merge.HIGHEST
)

# --- the queues as Postgres has them: exported by one worker of the fleet at a time, so read them
# with max by (queue, …)

QUEUE_JOBS = gauge(
    "queue_jobs",
    "{job}",
    ("queue", "state"),
    "Live jobs by state: due, scheduled (due later) or running; due and scheduled are exact up to"
    " 10,000, above that estimated; running is what the workers' heartbeats said.",
    "D8",
    Merge.HIGHEST,
)
QUEUE_OLDEST_DUE = gauge(
    "queue_oldest_due_seconds",
    "s",
    ("queue",),
    "How long the oldest due job has been due; 0 if there is none.",
    "D8",
    Merge.HIGHEST,
)
QUEUE_WORKERS = gauge(
    "queue_workers",
    "{worker}",
    ("queue",),
    "Live workers that claim from the queue.",
    "D8",
    Merge.HIGHEST,
)
QUEUE_PAUSED = gauge(
    "queue_paused", "", ("queue",), "1 while nobody may claim from the queue.", "D8", Merge.HIGHEST
)
UNKNOWN_KIND_JOBS = gauge(
    "unknown_kind_jobs",
    "{job}",
    ("queue", "kind"),
    "Jobs that have been due for a minute and that no live worker of their queue knows; where jobs"
    " are many, there may be more. No series: none were found.",
    "B17",
    Merge.HIGHEST,
)
HORIZON_AGE = gauge(
    "horizon_age_seconds",
    "s",
    (),
    "For how long somebody has kept vacuum from cleaning up: a transaction, a replication slot or a"
    " standby.",
    "D8",
    Merge.HIGHEST,
)
NOTIFY_QUEUE_USED = gauge(
    "notify_queue_used_ratio",
    "",
    (),
    "How full the server's queue of notifications is, from 0 to 1; from 0.5 on nobody rings.",
    "D8",
    Merge.HIGHEST,
)

INSTRUMENTS: Final = (
    *(value for value in tuple(globals().values()) if isinstance(value, Instrument)),
    *row_instruments.INSTRUMENTS,
    *monitor_instruments.INSTRUMENTS,
    *tick_instruments.INSTRUMENTS,
)
"""All instruments, in this order."""

NAMED: Final = {instrument.name: instrument for instrument in INSTRUMENTS}
