"""Measures the queues in one worker for the whole fleet, so that each value is exported once."""

from __future__ import annotations

import time
from datetime import timedelta

from hybrid_runner.model.upkeep import QueueDepth
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instruments import OTHER
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

_MOST_QUEUES = 300


class QueueDepths(Duty):
    """The values are exported while the duty is held, so no two workers export them at a time."""

    name = "queue_depths"
    every = timedelta(seconds=30)
    held = True
    session = named("queue_depths", FOR_SETTLING | {"statement_timeout": "4s"})
    patience = timedelta(seconds=5)

    def __init__(self) -> None:
        self._values: MetricValues = {}

    def metric_values(self) -> MetricValues:
        """The values that this worker exports; none while another one holds the duty. May be called
        from any thread.
        """
        values = self._values
        return values if time.monotonic() < self.held_until else {}

    async def run(self, connection: Fetches) -> None:
        """Measure. If that fails, no values are exported, rather than old ones."""
        try:
            queues = await worker_calls.queue_depths(connection)
            self._values = as_metric_values(queues, await worker_calls.horizon_age(connection))
        except BaseException:
            self._values = {}
            raise


def as_metric_values(queues: list[QueueDepth], horizon_age: float) -> MetricValues:
    """The values by instrument. Beyond 300 queues the rest is summed up as one."""
    queues, rest = queues[:_MOST_QUEUES], queues[_MOST_QUEUES:]
    if rest:
        _, due, scheduled, running, oldest, paused, workers = zip(*rest, strict=True)
        queues.append(
            QueueDepth(
                OTHER,
                sum(due),
                sum(scheduled),
                sum(running),
                max(oldest),
                all(paused),
                max(workers),
            )
        )
    return {
        table.QUEUE_JOBS.name: {
            (queue.queue, state): count
            for queue in queues
            for state, count in (
                ("due", queue.due),
                ("scheduled", queue.scheduled),
                ("running", queue.running),
            )
        },
        table.QUEUE_OLDEST_DUE.name: {(queue.queue,): queue.oldest_due for queue in queues},
        table.QUEUE_WORKERS.name: {(queue.queue,): queue.workers for queue in queues},
        table.QUEUE_PAUSED.name: {(queue.queue,): int(queue.paused) for queue in queues},
        table.HORIZON_AGE.name: {(): horizon_age},
    }
