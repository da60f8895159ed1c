"""The only place that uses private names of a worker: if one changes, no test has to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from hybrid_runner import Job, Worker
from hybrid_runner.client import waiting
from hybrid_runner.model.messages import Proof, channel_of
from hybrid_runner.model.news import JobsOverdue
from hybrid_runner.model.settlements import Requeued
from hybrid_runner.policy.doorbell import MarkInFlight, Mode, Reason
from hybrid_runner.policy.intervals import GrowingPause
from hybrid_runner.policy.look_rate import Sweeps
from hybrid_runner.storage.connections import listen, types_known
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.storage.queries import query
from hybrid_runner.upkeep.held_duty import HeldDuty
from hybrid_runner.upkeep.rescuer import Rescuer
from hybrid_runner.worker import connections, loops, reactions, shutdown
from hybrid_runner.worker import listener as listening
from hybrid_runner.worker.listener import Listener
from hybrid_runner.worker.queue import claimer as claiming
from hybrid_runner.worker.queue.claimer import Claimer
from hybrid_runner.worker.queue.members import Members
from hybrid_runner.worker.queue.poller import Poller
from hybrid_runner.worker.queue.queue_station import QueueStation
from hybrid_runner.worker.run import attempt
from hybrid_runner.worker.run.deadlines import Deadlines
from hybrid_runner.worker.run.executor import Executor
from hybrid_runner.worker.run.saves import Saves
from hybrid_runner.worker.settle import set_aside
from tests.support.waiting import differs_from, until

if TYPE_CHECKING:
    import pytest  # programs of tests import this too

T = TypeVar("T")
Call = Callable[..., Awaitable[Any]]
Wrap = Callable[[Call], Call]
"""Makes of a statement's call what a test wants in its place."""


def _queue(worker: Worker) -> QueueStation:
    return worker._station.queues["default"]


# --- how long things take


def make_outages_short(
    monkeypatch: pytest.MonkeyPatch, first: float = 0.005, longest: float = 0.005, factor: float = 1
) -> None:
    """The seconds between two tries of what failed, for workers in this process."""
    pace = GrowingPause(timedelta(seconds=first), timedelta(seconds=longest), factor)
    monkeypatch.setattr(loops, "OUTAGE", pace)


def make_waits_pause(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The seconds between two looks of `handle.wait` that Postgres does not answer."""
    pause = timedelta(seconds=seconds)
    monkeypatch.setattr(waiting, "OUTAGE", GrowingPause(pause, pause, 1))


def make_lingering_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long workers keep connections that nothing needs."""
    monkeypatch.setattr(connections, "LINGER", 0.1)


def make_refusals_short(monkeypatch: pytest.MonkeyPatch, first: float, longest: float) -> None:
    """The seconds between two tries of an outcome that Postgres refuses."""
    pace = GrowingPause(timedelta(seconds=first), timedelta(seconds=longest), 2)
    monkeypatch.setattr(set_aside, "REFUSED", pace)


def make_reminders_short(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The seconds between two cancellations of a handler that goes on."""
    pause = timedelta(seconds=seconds)
    monkeypatch.setattr(attempt, "REMINDERS", GrowingPause(pause, pause, 1))


def fail_to_start_once(worker: Worker) -> None:
    """The next time that jobs were claimed, starting them fails."""
    claimer = _queue(worker).claimer
    start = claimer._start

    def fail(_claims: object, _slots: object) -> None:
        claimer._start = start
        raise RuntimeError("can't start new thread")

    claimer._start = fail


def make_patience_short(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """How long a worker waits for what a dead network swallowed, while it runs and when it
    stops.
    """
    monkeypatch.setattr(reactions, "_ANSWER_LOST", seconds)
    monkeypatch.setattr(shutdown, "OVERRUN", seconds)


def make_last_claims_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a stop waits for the answers to the last claims."""
    monkeypatch.setattr(shutdown, "_LAST_CLAIMS", 600.0)


# --- who the others are


def members(worker: Worker) -> set[str]:
    """The ids of the queue's workers, as this one knows them."""
    return set(_queue(worker).members.kinds_of)


def notes_changes_of_members(worker: Worker) -> list[tuple[frozenset[str], bool]]:
    """The members and whether their kinds differ, each time that something was set from now on."""
    noted = list[tuple[frozenset[str], bool]]()

    class Noting(Members):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            noted.append((frozenset(self.kinds_of), self.kinds_differ))

    _queue(worker).members.__class__ = Noting
    return noted


def kinds_differ(worker: Worker) -> bool:
    """Whether it believes that some of the others may know other kinds."""
    return _queue(worker).members.kinds_differ


# --- slots and looks


def fill(worker: Worker, slots: int, reason: Reason = Reason.HELP) -> None:
    """Take so many slots, as if jobs ran in them."""
    _queue(worker).slots.take(slots)
    wake(worker, reason)


def free(worker: Worker, slots: int = 1) -> None:
    """Free slots that `fill` took."""
    for _ in range(slots):
        _queue(worker).slots.release()


def make_short(worker: Worker) -> None:
    """Make the worker believe that its looks leave jobs to others, for lack of threads."""
    _queue(worker).slots.is_short = lambda: True  # type: ignore[method-assign]
    _queue(worker).on_shortage()


def wake(worker: Worker, reason: Reason) -> None:
    _queue(worker).wake.up(reason)


def is_full(worker: Worker) -> bool:
    """Whether the worker is full and has no reason left to look."""
    return _queue(worker).claimer.mode is Mode.FULL and _queue(worker).wake.resting.is_set()


def was_full_for_long(worker: Worker) -> None:
    """Make the worker believe that it was full for `full_help_after`: it asks others for help."""
    _queue(worker).claimer._fresh_until = 0.0


def has_slept(worker: Worker, seconds: float) -> None:
    """Make the worker believe that it fell asleep so many seconds earlier."""
    claimer = _queue(worker).claimer
    assert claimer.asleep_since is not None
    claimer.asleep_since -= seconds


def forget_what_came(worker: Worker) -> None:
    """Make the worker believe that no job has come for long: it need not stay awake."""
    budget = _queue(worker).claimer.budget
    for rate in (budget._arrivals, budget._unexpected):
        rate._rate = 0.0


def replace_claim(worker: Worker, wrap: Wrap) -> None:
    """Replace the statement that claims."""
    connection: Any = worker._station.connections.claims
    fetch, claim, text = connection.fetch, wrap(connection.fetch), query("claim_jobs")

    async def ask(asked: str, *arguments: Any) -> Any:
        return await (claim if asked == text else fetch)(asked, *arguments)

    connection.fetch = ask


def waits_to_claim(worker: Worker) -> bool:
    """Whether it wants to claim and waits, because it may not now."""
    return bool(worker._station.identity._may_go_on._waiters)


def notes_marks(worker: Worker, note: Callable[[], None]) -> None:
    """Call `note` each time the worker marks anew which inserts are in flight."""
    claimer = _queue(worker).claimer
    run = claimer._run_on_bell

    async def noted(action: Any) -> Any:
        if isinstance(action, MarkInFlight):
            note()
        return await run(action)

    claimer._run_on_bell = noted  # type: ignore[method-assign]


def set_claimers_clock(monkeypatch: pytest.MonkeyPatch, now: Callable[[], float]) -> None:
    """By which claimers in this process measure their looks."""
    monkeypatch.setattr(claiming, "time", SimpleNamespace(monotonic=now))


def never_pause(
    claimer: Claimer, instead: Callable[[Exception], Coroutine[Any, Any, None]]
) -> None:
    """Replace the pause after a look that failed."""
    claimer._outage.pause = instead  # type: ignore[method-assign, assignment]


# --- rings and polls


class HeldRings:
    """Holds rings back that have arrived, until they are let through."""

    def __init__(self, listener: Listener, queue: str) -> None:
        self.payloads: list[str] = []
        self._held: list[tuple[object, ...]] = []
        assert listener._connection is not None
        callbacks = listener._connection._connection._listeners[channel_of(queue).name]  # type: ignore[attr-defined]
        [callback] = callbacks  # the driver's own
        self._heard = callback.cb
        callbacks.clear()
        callbacks.add(callback._replace(cb=self._hold))

    def _hold(self, *ring: object) -> None:
        self.payloads.append(str(ring[-1]))
        self._held.append(ring)

    def let_through(self) -> None:
        for ring in self._held:
            self._heard(*ring)


def hold_rings(worker: Worker) -> HeldRings:
    """Hold back all rings that arrive from now on."""
    return HeldRings(worker._station.listener, "default")


class _Blocked(Sweeps):
    """One that is on its way when sweeps are blocked does not allow the next one by its end."""

    def took(self, began: float, ended: float, usual: float = 0.0) -> None: ...


def block_sweeps(worker: Worker) -> None:
    """As if sweeps walked over so much that the next one has to wait for long."""
    now = time.monotonic()
    blocked = _Blocked(1.0, ready_at=now + 3600, last_at=now + 3600)
    _queue(worker).claimer.budget._sweeps = blocked


def tell_overdue(worker: Worker) -> None:
    """Tell the worker what a heartbeat says that found an overdue job."""
    station = _queue(worker)
    station.on_news(JobsOverdue(station.queue, timedelta(seconds=1)))


def missed_rings_examined(worker: Worker) -> asyncio.Event:
    """An event that is set once the worker has examined what a poll found."""
    missed, examined = _queue(worker).missed, asyncio.Event()
    examine = missed._examine

    async def noted(suspects: list[int], *, alone: bool) -> None:
        await examine(suspects, alone=alone)
        examined.set()

    missed._examine = noted  # type: ignore[method-assign]
    return examined


def examines_missed_rings(worker: Worker) -> bool:
    """Whether the worker examines what a poll found just now."""
    names = [task.get_coro().__qualname__ for task in worker._tasks.named("")]  # type: ignore[union-attr]
    return any(name.endswith("_examine") for name in names)


def hold_polls(worker: Worker, goes_on: asyncio.Event) -> None:
    """Make the worker's fallback polls wait for this event."""
    poller = _queue(worker).poller
    poll = poller._poll

    async def hang() -> None:
        await goes_on.wait()
        await poll()

    poller._poll = hang  # type: ignore[method-assign]


async def poll_once(poller: Poller) -> None:
    await poller._poll()


def pause_changed(poller: Poller) -> asyncio.Event:
    """The event that ends a running pause."""
    return poller._changed


# --- the listener

PROOF_OVERDUE_AFTER = listening._PROOF_OVERDUE + listening._READ
"""Seconds without a proof after which a worker's health page says so."""


def listener(worker: Worker) -> Listener:
    return worker._station.listener


def session(listener: Listener | Worker) -> object:
    """The listener's connection, to be compared with a later one."""
    return _listener(listener)._connection


def hold_hang_up(worker: Worker) -> tuple[asyncio.Event, Callable[[], None]]:
    """Keep the listener's connection though it is given up; what is returned is set then, and does
    it.
    """
    connection = worker._station.listener._connection
    assert connection is not None
    given_up, hang_up = asyncio.Event(), connection.hang_up
    connection.hang_up = given_up.set  # type: ignore[method-assign]
    return given_up, hang_up


def proof_channel(worker: Worker) -> str | None:
    return worker._station.listener.proof_channel


async def ask_listener(worker: Worker, query: str) -> Rows:
    """Run a query on the connection on which rings arrive."""
    return await worker._station.listener.fetch(query)


def send_listener_to(worker: Worker, dsn: str) -> str:
    """Set where the listener connects the next time; returns where it did so far."""
    before, worker._station.listener._dsn = worker._station.listener._dsn, dsn
    return before


def read_few_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many a listener reads a second: on a busy machine it cannot read the usual number."""
    monkeypatch.setattr(listen, "_MOST_A_SECOND", 2000)


def let_listeners_be_lost_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short a connection lasted, there is no pause after it."""
    monkeypatch.setattr(listening, "_STEADY", 0.0)


def make_silence_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a listener waits until it asks again whether there is room for notifications."""
    monkeypatch.setattr(listening, "_SILENCED", 0.05)


def listens_behind_a_pooler(monkeypatch: pytest.MonkeyPatch, connection: type) -> None:
    """Give listeners connections of this class, and a short time-out for the first proof."""
    monkeypatch.setattr(listening, "ListenConnection", connection)
    monkeypatch.setattr(listening, "_PROOF_TIMEOUT", 0.01)


def cut_in_silence(listener: Listener) -> None:
    """Kill the connection so that the driver calls no callback."""
    connection = listener._connection
    assert connection is not None
    connection._connection._termination_listeners.clear()  # type: ignore[attr-defined]  # the driver's own
    connection._connection.terminate()


async def prove(listener: Listener) -> None:
    """Send a proof, and wait until it is heard."""
    connection, proved = listener._connection, listener._proved_at
    assert connection is not None
    assert listener.proof_channel is not None
    assert listener._proof is not None
    await connection.send(listener._proof, Proof())
    await until(lambda: listener._proved_at, differs_from(proved))


async def prove_in_vain(listener: Listener) -> None:
    """Send a proof after all subscriptions were dropped in silence: it cannot arrive."""
    connection = listener._connection
    assert connection is not None
    await connection._connection.execute(f'UNLISTEN "{listener.proof_channel}"')
    assert listener._proof is not None
    await connection.send(listener._proof, Proof())


def _listener(of: Listener | Worker) -> Listener:
    return of._station.listener if isinstance(of, Worker) else of


# --- the heartbeat


def beat_soon(worker: Worker) -> None:
    worker._station.membership.soon()


async def stop_beating(worker: Worker) -> None:
    await worker._station.membership.stop()


def beaten_at(worker: Worker) -> float:
    """When Postgres answered the last heartbeat, by the monotonic clock."""
    return worker._station.identity.confirmed_at


def has_not_beaten_for(worker: Worker, seconds: float) -> None:
    worker._station.identity.confirmed_at = time.monotonic() - seconds


# --- outcomes


def replace_finish(worker: Worker, wrap: Wrap) -> None:
    """Replace the statement that archives ended jobs."""
    outcomes: Any = worker._station.settler.usual._outcomes
    outcomes.finish = wrap(outcomes.finish)


def replace_requeue(worker: Worker, wrap: Wrap) -> None:
    """Replace the statement that puts jobs back."""
    outcomes: Any = worker._station.settler.usual._outcomes
    outcomes.requeue = wrap(outcomes.requeue)


def replace_repeat(worker: Worker, wrap: Wrap) -> None:
    """Replace the statement that puts jobs back for their next runs."""
    outcomes: Any = worker._station.settler.usual._outcomes
    outcomes.repeat = wrap(outcomes.repeat)


def set_settled(worker: Worker, **counts: int) -> None:
    """Set the counts of what the worker has settled."""
    worker._reports.job_counts.settled.clear()
    worker._reports.job_counts.settled.update(counts)


# --- the rest of a worker


def loop_of(worker: Worker, name: str) -> asyncio.Task[None]:
    """The task of one of the worker's background loops."""
    [task] = worker._tasks.named(name)
    return task


def knows_of_readers(worker: Worker) -> bool:
    """Whether the worker has heard that an event stream is being read."""
    return worker._reactions._change_feed.has_readers


async def ask_claims(worker: Worker, query: str) -> Rows:
    """Run a query on the connection that claims, while nothing is claimed."""
    return await worker._station.connections.claims.fetch(query)


def kill_idle_process(worker: Worker) -> None:
    """Kill the only process for handlers, while it waits for the next attempt."""
    [idle] = worker._station.executor._pools._processes._free
    idle._process.kill()
    idle._process.join(10)


def claim_number(job: Job) -> int:
    """The claim number of the attempt that this handler runs in."""
    return job._claim.number


# --- what is done for others


async def put_back(rescuer: Rescuer, database: Connection, jobs: list[Requeued]) -> int:
    """Put a dead worker's jobs back; returns how many were still there."""
    return await rescuer._settle(database, jobs)


def looks_for_ticks_at(worker: Worker) -> float | None:
    """When its timer of schedules goes off."""
    return worker._station.membership.upkeep.ticks._timer.looks_at


def rescue_first(worker: Worker) -> None:
    """Have the next news make the worker rescue what earlier ones left behind."""
    worker._station.membership.upkeep.rescue_first = True


def is_to_rescue_first(worker: Worker) -> bool:
    return worker._station.membership.upkeep.rescue_first


def replace_rescue(worker: Worker, wrap: Wrap) -> None:
    """Replace what is done about dead workers."""
    rescuer: Any = worker._station.membership.upkeep._rescuer
    rescuer.rescue = wrap(rescuer.rescue)


def types_asked_about(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """What sessions ask about types from now on; what the process knew is forgotten."""
    asked = list[set[int]]()
    driver: Any = types_known.Connection
    ask = driver._introspect_types

    async def noted(session: object, types: Iterable[int], timeout: float) -> Any:
        asked.append({*types})
        return await ask(session, types, timeout)

    monkeypatch.setattr(driver, "_introspect_types", noted)
    monkeypatch.setattr(types_known, "_known", {})
    return asked


def holds(duty: HeldDuty) -> bool:
    """Whether this worker believes that it holds the duty."""
    return duty._hold is not None


# --- time-outs of attempts


def remembered(deadlines: Deadlines) -> int:
    """How many time-outs are in memory, ended ones included."""
    return len(deadlines._heap)


def awaits_no_time_out(executor: Executor) -> bool:
    """Whether no alarm is set and none is needed."""
    return executor._deadlines._alarm is None and executor._deadlines._living == 0


def saves_aside(saves: Saves) -> int:
    """How many memories wait because their rows are locked."""
    return len(saves._aside)
