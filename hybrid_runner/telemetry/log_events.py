"""What each log line of ours is about, as a name that stays when its words change: docs/logs.md says what each means."""

from __future__ import annotations

from typing import Literal

LogEvent = Literal[
    "archive.prune_blocked", "archive.pruned",
    "command.failed",
    "fleet.aborted", "fleet.process_ended", "fleet.process_killed", "fleet.process_restarted",
    "fleet.started", "fleet.stopping", "fleet.supervisor_gone",
    "job.cancel_reasons_unread", "job.cancel_requested", "job.cancelled", "job.claimed", "job.completed", "job.enqueued",
    "job.failed", "job.outcome_dropped", "job.outcome_locked", "job.outcome_refused", "job.outcome_unusable",
    "job.progressed", "job.raised", "job.released", "job.rescue_failed", "job.rescued", "job.retried",
    "job.row_gone", "job.snoozed", "job.started", "job.thread_goes_on",
    "jobs.summary",
    "listener.lost", "listener.ring_not_heard", "listener.rings_missed", "listener.started", "listener.unusable",
    "loop.stalled",
    "outage.failed", "outage.over",
    "postgres.embedded", "postgres.unavailable",
    "process.thread_failed", "process.unraisable",
    "queue.looked", "queue.unnamed",
    "tables.grow",
    "telemetry.observer_failed", "telemetry.send_failed", "telemetry.setting_ignored", "telemetry.start_failed",
    "telemetry.undelivered",
    "upkeep.duty_unknown", "upkeep.failed",
    "web.database_unavailable", "web.port_unusable", "web.reader_dismissed", "web.started", "web.stream_failed",
    "worker.aborted", "worker.declared_dead", "worker.grace_exceeded", "worker.leave_failed", "worker.loop_ended",
    "worker.outcomes_unwritten", "worker.reregistered", "worker.sign_off_failed", "worker.started", "worker.stopped",
    "worker.stopping", "worker.thread_abandoned", "worker.threads",
]  # fmt: skip


def log_event(name: LogEvent, **fields: object) -> dict[str, object]:
    """For `extra`: which event a line is about, and its fields."""
    return {"event": name, **fields}
