"""What a worker is made of, and which part uses which: the architecture on one page.

Parts are made from the bottom up, and each is given the parts that it uses. What a loop calls when
something happens in it is given to it when it is started: see `Worker.start`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, assert_never

from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.messages import (
    READERS,
    SOURCES,
    TICKS,
    RowsChanged,
    SchedulesChanged,
    SourcesChanged,
    SourcesMessage,
    channel_of,
)
from hybrid_runner.policy.allowance import Allowance
from hybrid_runner.policy.doorbell import Reason
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.settings import Settings
from hybrid_runner.storage import claim_calls, signal_calls
from hybrid_runner.telemetry.metrics.counters import Counters
from hybrid_runner.telemetry.observers import Observers
from hybrid_runner.telemetry.tracing.tracing import Tracing, make_tracing
from hybrid_runner.worker.connections import Connections
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.liveness.beats import Beats
from hybrid_runner.worker.liveness.fleet import Fleet
from hybrid_runner.worker.liveness.membership import Membership, Offer, proof_timeout
from hybrid_runner.worker.liveness.questions import Questions
from hybrid_runner.worker.liveness.upkeep_loop import UpkeepLoop
from hybrid_runner.worker.liveness.watchdog import Watchdog
from hybrid_runner.worker.liveness.worker_loop import WorkerLoop
from hybrid_runner.worker.paced import Paced
from hybrid_runner.worker.queue.claimable import Claimable, kinds_of
from hybrid_runner.worker.queue.claimer import Claimer, Reasons
from hybrid_runner.worker.queue.claims import Claims, InHand
from hybrid_runner.worker.queue.members import Members
from hybrid_runner.worker.queue.missed_rings import MissedRings
from hybrid_runner.worker.queue.poller import Poller
from hybrid_runner.worker.queue.queue_station import QueueStation
from hybrid_runner.worker.queue.slots import Slots
from hybrid_runner.worker.queue.timer import Timer
from hybrid_runner.worker.queue.unclaimable import Unclaimable
from hybrid_runner.worker.queue.wake import Wake
from hybrid_runner.worker.reactions import Reactions
from hybrid_runner.worker.report.change_feed import ChangeFeed
from hybrid_runner.worker.report.job_counts import JobCounts
from hybrid_runner.worker.report.job_log import JobLog
from hybrid_runner.worker.run.callbacks import Callbacks
from hybrid_runner.worker.run.executor import Executor
from hybrid_runner.worker.run.job_port import WorkerPort
from hybrid_runner.worker.run.payloads import Payloads
from hybrid_runner.worker.run.pools import HandlerPools
from hybrid_runner.worker.run.progress import ProgressWriter
from hybrid_runner.worker.run.row_beats import RowBeats
from hybrid_runner.worker.run.rows import Rows
from hybrid_runner.worker.run.saves import Saves
from hybrid_runner.worker.settle.outcome_port import Outcomes, RowOutcomes
from hybrid_runner.worker.settle.settler import Gathering, Settler
from hybrid_runner.worker.settle.settlers import Settlers
from hybrid_runner.worker.station import Station
from hybrid_runner.worker.tasks import Tasks
from hybrid_runner.worker.waits.taker import SignalTaker
from hybrid_runner.worker.waits.waker import Waker

_MANY_OUTCOMES = 50


class Reports(NamedTuple):
    """Observers that a worker has once, whatever database its jobs come from."""

    job_counts: JobCounts
    counters: Counters
    job_log: JobLog


class Wired(NamedTuple):
    """The part of a worker that belongs to one database, ready to start."""

    station: Station
    reactions: Reactions
    progress: ProgressWriter
    saves: Saves
    waker: Waker
    callbacks: Callbacks
    row_beats: RowBeats


def wire(
    dsn: str,
    settings: Settings,
    registry: Registry,
    slots: Mapping[str, int],
    identity: Identity,
    tasks: Tasks,
    reports: Reports,
) -> Wired:
    """Make all parts. Nothing is asked of the database yet."""
    connections = Connections(
        dsn, flush_claims=settings.work.flush_claims, lease=settings.work.lease
    )
    listener = Listener(settings.database.listen_dsn or dsn)
    kinds = kinds_of(registry)
    tracing = make_tracing(lambda: identity.id)
    total = sum(slots.values())

    # Who counts, logs, traces and publishes what happens.
    change_feed = ChangeFeed(listener, listener.send, tasks.soon)
    observers = Observers([*reports, tracing, change_feed])

    # From a claim to the archive: executor → settler.
    progress = ProgressWriter(
        partial(claim_calls.record_progress, connections.courtesies), change_feed.note
    )
    saves = Saves(
        partial(claim_calls.save_data, connections.courtesies),
        partial(claim_calls.find_locked, connections.courtesies),
    )
    signals = SignalTaker(connections.courtesies)
    callbacks = Callbacks(settings.pages.http_url)
    port = WorkerPort(progress, saves, signals, registry, callbacks)
    pools = HandlerPools(
        threads=settings.work.thread_slots, processes=settings.work.process_slots, port=port
    )
    settler = _wire_settlers(settings, connections, tracing, registry, total)
    payloads = Payloads(connections.courtesies, settings.work.payload_mib * 1024 * 1024)
    rows = Rows(connections.of_source, tasks.insist)
    executor = Executor(registry, pools, settler.settle, port, tracing, payloads, rows, signals)
    row_beats = RowBeats(connections.of_source, executor.shown)

    # Among the workers: membership in this loop, the rest in the heartbeat's thread.
    worker_loop = WorkerLoop()
    upkeep = UpkeepLoop(
        dsn,
        registry,
        executor,
        settings.work.timeout_grace,
        tracing,
        observers.on_rescued,
        worker_loop,
        settings.polling.row_check,
    )
    questions = Questions(
        connections.heartbeat,
        list(slots),
        settings.work.timeout_grace,
        executor,
        upkeep.duty_names,
        connections.patience,
    )
    fleet = Fleet(list(slots), settings.work.lease)
    beats = Beats(connections, identity, fleet, questions, executor, listener, upkeep, worker_loop)
    watchdog = Watchdog(
        settings.work.stall_after.total_seconds(), executor.mark_stall, reports.counters.on_loop_lag
    )
    offer = Offer(slots, kinds, [each.name for each in registry.schedules])
    membership = Membership(connections, settings, identity, offer, beats, watchdog)

    ask_for_heartbeat = Paced(membership.soon, Allowance(at_once=10, per_second=0.5))

    # From a ring to a claim: listener → queue → wake → claimer → executor.
    in_hand = InHand(lambda: [*executor.claims, *settler.claims()], settler.settle)

    def wire_queue(queue: str, slots: int) -> QueueStation:
        wake = Wake()
        claimable = Claimable(registry, pools.places)
        reasons = Reasons(
            wake,
            Slots(
                slots,
                on_free=partial(wake.up, Reason.SLOT),
                room=partial(payloads.room, queue, settler.room),
                claimable=claimable,
            ),
            Timer(wake, furthest=settings.polling.hybrid_poll_cap),
            Poller(
                wake,
                deaf=GrowingPause(
                    settings.polling.poll_base,
                    settings.polling.poll_cap,
                    settings.polling.poll_factor,
                ),
                hearing=GrowingPause(
                    settings.polling.hybrid_poll_base,
                    settings.polling.hybrid_poll_cap,
                    settings.polling.poll_factor,
                ),
            ),
        )
        payloads.watch(reasons.slots.offer)
        members = Members(identity, kinds.number)
        missed = MissedRings(
            queue,
            connections.courtesies,
            listener,
            members,
            tasks.soon,
            reports.counters.on_missed_rings,
        )
        claims = Claims(
            queue,
            connections.claims,
            claimable,
            identity,
            settings.tuning.frontier_margin,
            membership.soon,
            in_hand,
            Unclaimable(connections.claims, observers.on_settled, partial(wake.up, Reason.HELP)),
        )
        on_look = (missed.on_look, observers.on_look)
        claimer = Claimer(
            queue, settings, reasons, claims, listener, members, executor.start, on_look
        )
        station = QueueStation(
            claimer,
            reasons,
            members,
            missed,
            listener,
            executor.runs,
            ask_for_heartbeat,
            tasks.soon,
        )
        claimable.watch(station.on_shortage, on_free=partial(wake.up, Reason.SLOT))
        return station

    queues = {queue: wire_queue(queue, count) for queue, count in slots.items()}
    for name, queue in queues.items():
        listener.hear(channel_of(name), queue.heard)
    listener.hear(READERS, change_feed.announced)
    listener.hear(SOURCES, _on_sources(upkeep, ask_for_heartbeat))
    listener.hear(TICKS, _on_schedules(upkeep))
    waker = Waker(
        connections.courtesies,
        lambda: identity.id,
        lambda: {name for queue in queues.values() for name in queue.members.kinds_of},
        lambda: listener.hearing,
    )
    listener.hear_where(signal_calls.find_channel, waker.heard)

    station = Station(identity, connections, listener, membership, executor, settler, queues)
    proof_seconds = proof_timeout(settings).total_seconds()
    return Wired(
        station,
        Reactions(station, tasks, change_feed, observers.on_settled, proof_seconds, waker.on_turn),
        progress,
        saves,
        waker,
        callbacks,
        row_beats,
    )


def _on_sources(
    upkeep: UpkeepLoop, ask_for_heartbeat: Paced
) -> Callable[[SourcesMessage, int], None]:
    """What a worker does when it hears of attached tables and their rows."""
    look = Paced(upkeep.ring_for_rows, Allowance(at_once=5, per_second=10))

    def heard(message: SourcesMessage, _sender: int) -> None:
        match message:
            case RowsChanged():
                look()
            case SourcesChanged():
                ask_for_heartbeat()
            case _:
                assert_never(message)

    return heard


def _on_schedules(upkeep: UpkeepLoop) -> Callable[[SchedulesChanged, int], None]:
    """What a worker does when it hears that schedules changed."""
    ask = Paced(upkeep.ticks.ring, Allowance(at_once=10, per_second=10))
    return lambda _message, _sender: ask()


def _wire_settlers(
    settings: Settings, connections: Connections, tracing: Tracing, registry: Registry, slots: int
) -> Settlers:
    gathering = Gathering(
        seconds=settings.tuning.settle_batch_pause.total_seconds(),
        from_rate=settings.tuning.doorbell_rate,
        enough=max(1, min(slots // 4, _MANY_OUTCOMES)),
    )
    outcomes = Outcomes(connections.settles, tracing, registry.on_ends)
    row_outcomes = RowOutcomes(connections.row_settles, tracing, registry.on_ends)
    return Settlers(
        Settler(outcomes, most=2 * slots, gathering=gathering),
        Settler(row_outcomes, most=2 * slots, gathering=gathering),
    )
