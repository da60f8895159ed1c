"""Measures the queues in one worker for the whole fleet, so that each value is exported once."""

from __future__ import annotations

import math
import time
from datetime import timedelta

from hybrid_runner.model.upkeep import QueueDepth
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import OTHER
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

_MOST_QUEUES = 300
_MOST_INVENTED = 10
"""Of queues that no worker has opened: a mistyped name is seen, a thousand made-up ones are no
series.
"""
_VALID = 25.0
"""Seconds for which values are exported if the next measurement fails."""


class QueueDepths(Duty):
    """The values are exported while the duty is held, so no two workers export them at a time."""

    name = "queue_depths"
    every = timedelta(seconds=30)
    held = True
    session = named("queue_depths", FOR_SETTLING | {"statement_timeout": "4s"})
    patience = timedelta(seconds=5)

    def __init__(self) -> None:
        self._values: MetricValues = {}
        self._measured_at = self._failed_at = -math.inf

    def metric_values(self) -> MetricValues:
        """The values that this worker exports; none while another one holds the duty. May be called
        from any thread.
        """
        values, now = self._values, time.monotonic()
        is_old = self._failed_at > self._measured_at and now - self._measured_at > _VALID
        return values if now < self.held_until and not is_old else {}

    def end_hold(self) -> None:
        """Forget the values: when the duty is held again they would be old."""
        super().end_hold()
        self._values = {}

    async def run(self, connection: Fetches) -> None:
        """Measure. If that fails, the values before are exported until they are too old."""
        began = time.monotonic()
        try:
            queues = await worker_calls.queue_depths(connection)
            values = as_metric_values(
                queues,
                await worker_calls.horizon_age(connection),
                await worker_calls.notify_queue_used(connection),
            )
        except Exception:
            self._failed_at = time.monotonic()
            raise
        self._values, self._measured_at = values, began


def as_metric_values(
    queues: list[QueueDepth], horizon_age: float, notify_queue_used: float
) -> MetricValues:
    """The values by instrument. Beyond 300 queues, and beyond 10 that no worker has opened, the
    rest is summed up as one.
    """
    opened = [queue for queue in queues if queue.opened]
    invented = [queue for queue in queues if not queue.opened]
    rest = opened[_MOST_QUEUES:] + invented[_MOST_INVENTED:]
    queues = opened[:_MOST_QUEUES] + invented[:_MOST_INVENTED]
    if rest:
        queues.append(
            QueueDepth(
                OTHER,
                due=sum(queue.due for queue in rest),
                scheduled=sum(queue.scheduled for queue in rest),
                running=sum(queue.running for queue in rest),
                oldest_due=max(queue.oldest_due for queue in rest),
                paused=all(queue.paused for queue in rest),
                workers=max(queue.workers for queue in rest),
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
        table.NOTIFY_QUEUE_USED.name: {(): notify_queue_used},
    }
