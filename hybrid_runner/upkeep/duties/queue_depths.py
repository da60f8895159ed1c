"""Measures the queues for the whole fleet, in one worker: each figure is shown once, and stays
where it is shown.
"""

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
    """What it measured is shown while it is held, so no two workers show it at a time."""

    name = "queue_depths"
    every = timedelta(seconds=30)
    held = True
    session = named("queue_depths", FOR_SETTLING | {"statement_timeout": "4s"})
    patience = timedelta(seconds=5)

    def __init__(self) -> None:
        self._figures: MetricValues = {}

    def figures(self) -> MetricValues:
        """What this worker measured for all; nothing while another does that. From any thread."""
        figures = self._figures
        return figures if time.monotonic() < self.held_until else {}

    async def run(self, connection: Fetches) -> None:
        """Measure; if that fails, what was measured before is not shown as new."""
        try:
            queues = await worker_calls.queue_depths(connection)
            self._figures = as_figures(queues, await worker_calls.horizon_age(connection))
        except BaseException:
            self._figures = {}
            raise


def as_figures(queues: list[QueueDepth], horizon_age: float) -> MetricValues:
    """By instrument; of very many queues the last ones are shown together."""
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
