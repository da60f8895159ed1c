"""One worker at one moment, read off its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hybrid_runner.telemetry.figures import Figures
from hybrid_runner.worker.station import Station
from hybrid_runner.worker.status import Vitals, WorkerStatus
from hybrid_runner.worker.tally import Tally


def snapshot(station: Station, tally: Tally, *, stopping: bool, ended_loops: Sequence[str], figures: Figures) -> WorkerStatus:
    """From any thread: nothing here waits."""
    presence, listener, executor, settler = station.presence, station.listener, station.executor, station.settler
    heartbeat = () if presence.alive or stopping else ("heartbeat",)
    return WorkerStatus(
        id=station.identity.id, hearing=listener.hearing, stopping=stopping,
        running=len(executor.running), waiting=executor.waiting, pending_settlements=settler.pending,
        settled=dict(tally.settled), stale=settler.stale, rescued=presence.upkeep.rescued,
        stalls=presence.watchdog.stalls, stalled=presence.watchdog.stalled,
        ended_loops=(*ended_loops, *heartbeat), queues=tuple(queue.status() for queue in station.queues.values()),
        vitals=_vitals(station), listeners_lost=listener.lost, figures={**figures, **presence.upkeep.duties.queue_depths.figures()},
    )  # fmt: skip


def _vitals(station: Station) -> Vitals:
    presence, listener, contact = station.presence, station.listener, station.links.contact
    return Vitals(
        heartbeat_age=time.monotonic() - station.identity.confirmed_at, heartbeat_every=presence.pause, deaf=listener.deaf,
        doubted=listener.doubted, away=contact.away, complaint=contact.complaint, loop_lag=presence.watchdog.lag,
        pinned=presence.upkeep.duties.growth.pinned,
    )  # fmt: skip
