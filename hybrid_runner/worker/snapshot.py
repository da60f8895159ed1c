"""One worker at one moment, read off its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hybrid_runner.storage.contact import Contact
from hybrid_runner.telemetry.counting import Counts
from hybrid_runner.telemetry.figures import Figures
from hybrid_runner.worker.executor import Executor
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.presence import Presence
from hybrid_runner.worker.settler import Settler
from hybrid_runner.worker.status import QueueStatus, Vitals, WorkerStatus


def snapshot(
    worker_id: str,
    presence: Presence,
    listener: Listener,
    executor: Executor,
    settler: Settler,
    counts: Counts,
    contact: Contact,
    *,
    stopping: bool,
    ended_loops: Sequence[str],
    queues: Sequence[QueueStatus],
    figures: Figures,
) -> WorkerStatus:
    """From any thread: nothing here waits."""
    heartbeat = () if presence.alive or stopping else ("heartbeat",)
    return WorkerStatus(
        id=worker_id, hearing=listener.hearing, stopping=stopping,
        running=len(executor.running), waiting=executor.waiting, pending_settlements=settler.pending,
        settled=dict(counts.settled), stale=settler.stale, rescued=presence.rescued,
        stalls=presence.watchdog.stalls, stalled=presence.watchdog.stalled,
        ended_loops=(*ended_loops, *heartbeat), queues=tuple(queues),
        vitals=_vitals(presence, listener, contact), listeners_lost=listener.lost, figures=figures,
    )  # fmt: skip


def _vitals(presence: Presence, listener: Listener, contact: Contact) -> Vitals:
    return Vitals(
        heartbeat_age=time.monotonic() - presence.beaten_at, heartbeat_every=presence.pause, deaf=listener.deaf,
        doubted=listener.doubted, away=contact.away, complaint=contact.complaint, loop_lag=presence.watchdog.lag,
        pinned=presence.pinned,
    )  # fmt: skip
