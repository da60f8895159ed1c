"""Reads a worker's status off its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.worker.report.job_counts import JobCounts
from hybrid_runner.worker.report.status import Vitals, WorkerStatus
from hybrid_runner.worker.station import Station


def snapshot(
    station: Station,
    job_counts: JobCounts,
    *,
    stopping: bool,
    ended_loops: Sequence[str],
    metric_values: MetricValues,
) -> WorkerStatus:
    """The status now. May be called from any thread."""
    membership, listener, executor, settler = (
        station.membership,
        station.listener,
        station.executor,
        station.settler,
    )
    duties = membership.upkeep.duties
    heartbeat = () if membership.alive or stopping else ("heartbeat",)
    return WorkerStatus(
        id=station.identity.id,
        hearing=listener.hearing,
        stopping=stopping,
        running=len(executor.running),
        waiting=executor.waiting,
        pending_settlements=settler.pending,
        refused_settlements=settler.refused,
        settled=dict(job_counts.settled),
        stale=settler.stale,
        rescued=membership.upkeep.rescued,
        stalls=membership.watchdog.stalls,
        stalled=membership.watchdog.stalled,
        ended_loops=(*ended_loops, *heartbeat),
        queues=tuple(queue.status() for queue in station.queues.values()),
        vitals=_vitals(station),
        listeners_lost=listener.lost,
        metric_values={
            **metric_values,
            **duties.metric_values(),
            **membership.upkeep.ticks.counters.metric_values(),
        },
    )


def _vitals(station: Station) -> Vitals:
    membership, listener, reachability = (
        station.membership,
        station.listener,
        station.connections.reachability,
    )
    return Vitals(
        heartbeat_age=time.monotonic() - station.identity.confirmed_at,
        heartbeat_every=membership.pause,
        deaf=listener.deaf,
        disturbance=listener.disturbance,
        proof_overdue=listener.proof_overdue,
        away=reachability.away,
        complaint=reachability.complaint,
        loop_lag=membership.watchdog.lag,
        refusal=station.settler.refusal(),
        pinned=membership.upkeep.duties.growth.pinned,
        sources=membership.upkeep.duties.sources.complaints,
        monitors=membership.upkeep.duties.monitors.complaints,
        schedules=membership.upkeep.duties.schedules.complaints,
        unknown_kinds=tuple(map(str, membership.upkeep.duties.unknown_kinds.found)),
    )
