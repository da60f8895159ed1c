"""The values of all metrics of one process: what its worker counted, and its status now."""

from __future__ import annotations

from hybrid_runner.policy.doorbell import Mode
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.version import VERSION
from hybrid_runner.worker.report.status import QueueStatus, WorkerStatus


def metric_values_of(status: WorkerStatus | None, restarts: int = 0) -> MetricValues:
    """The metrics of one process; without a status its worker has not started yet."""
    always: MetricValues = {
        table.INFO.name: {(VERSION,): 1},
        table.WORKERS.name: {(): int(status is not None)},
        table.PROCESS_RESTARTS.name: {(): restarts},
    }
    return (
        always
        if status is None
        else {**always, **_of_worker(status), **_of_queues(status.queues), **status.metric_values}
    )


def _of_worker(status: WorkerStatus) -> MetricValues:
    return {
        table.HEARING.name: {(): int(status.hearing)},
        table.LISTENER_RECONNECTS.name: {(): status.listeners_lost},
        table.PENDING_SETTLEMENTS.name: {(): status.pending_settlements},
        table.STALLS.name: {(): status.stalls},
        table.STALLED.name: {(): int(status.stalled)},
    }


def _of_queues(queues: tuple[QueueStatus, ...]) -> MetricValues:
    return {
        table.POLLS.name: {(queue.queue,): queue.polls for queue in queues},
        table.LOOK_ERRORS.name: {(queue.queue,): queue.errors for queue in queues},
        table.CONSECUTIVE_ERRORS.name: {
            (queue.queue,): queue.consecutive_errors for queue in queues
        },
        table.CONSECUTIVE_EMPTY_POLLS.name: {(queue.queue,): queue.empty_polls for queue in queues},
        table.RINGS.name: {(queue.queue,): queue.rings for queue in queues},
        table.SLOTS.name: {(queue.queue,): queue.slots for queue in queues},
        table.RUNNING.name: {(queue.queue,): queue.running for queue in queues},
        table.DOORBELL_MODE.name: {
            (queue.queue, mode.value): int(queue.mode == mode.value)
            for queue in queues
            for mode in Mode
        },
    }
