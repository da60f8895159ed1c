"""Walks every interleaving of a worker that is awake and holds the doorbell quiet, another one that
comes and knows another kind, and a job of that kind. The first one is the `QueueStation` and the
`Members` that run in production.

A world is bad when the job waits, the newcomer sleeps, and no message, heartbeat or look is on its
way: then the job would wait until a timer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Iterator
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

from hybrid_runner.model.messages import QueueMessage, WorkerCame, WorkerLeft
from hybrid_runner.settings import Settings
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.queue.members import Members
from hybrid_runner.worker.queue.queue_station import QueueStation

HERE, NEWCOMER = "here", "newcomer"
_KINDS = {HERE: "kinds", NEWCOMER: "other kinds"}
FORGED: tuple[QueueMessage, ...] = (
    WorkerCame("ghost"),
    WorkerCame(HERE),
    WorkerLeft(NEWCOMER),
    WorkerLeft(HERE),
)


class Came(IntEnum):
    """How far the newcomer is."""

    NOT_YET = 0
    REGISTERED = 1
    LISTENS = 2
    HAS_OPENED = 3
    SLEEPS = 4


class Job(IntEnum):
    NOT_YET = 0
    WAITS = 1
    CLAIMED = 2


class Unmute(IntEnum):
    """How far the first worker is with undoing its mute."""

    NOT_ASKED = 0
    TO_OPEN = 1
    TO_RING = 2


class Rules(NamedTuple):
    """What the first worker must keep; tests drop them one at a time."""

    asks: bool = True
    """A message that the last heartbeat denies causes a heartbeat."""
    asks_anew: bool = True
    """One that is asked for while another is on its way is sent afterwards."""
    unmutes: bool = True
    """It undoes its mute once it knows that kinds differ."""
    believes_heartbeats_alone: bool = True
    """Dropped: a worker that is said to have left is forgotten at once."""


class World(NamedTuple):
    """All that is shared, and what is on its way."""

    forged: int = 0
    """Messages of a stranger that may still come."""
    knows: bool = False
    """The first worker knows the newcomer."""
    muted: bool = True
    came: Came = Came.NOT_YET
    job: Job = Job.NOT_YET
    rung: bool = False
    """The newcomer is going to look."""
    messages: tuple[QueueMessage, ...] = ()
    asked: bool = False
    beat: bool | None = None
    """Whether the heartbeat on its way has seen the newcomer; None: none is on its way."""
    unmute: Unmute = Unmute.NOT_ASKED


class Explored(NamedTuple):
    """How many worlds were found, and the shortest way to one that is bad."""

    worlds: int
    story: list[World]


def explore(forged: int = 0, *, beating: bool = False, rules: Rules = Rules()) -> Explored:  # noqa: B008  # frozen
    """Walk until nothing is new, or something is bad. With `beating` a heartbeat was on its way."""
    start = World(forged, beat=False if beating else None)
    came_from: dict[World, World | None] = {start: None}
    todo = deque([start])
    while todo:
        world = todo.popleft()
        if _is_lost(world):
            return Explored(len(came_from), _story(world, came_from))
        for after in _moves(world, rules):
            if after not in came_from:
                came_from[after] = world
                todo.append(after)
    return Explored(len(came_from), [])


def _story(world: World | None, came_from: dict[World, World | None]) -> list[World]:
    story: list[World] = []
    while world is not None:
        story.append(world)
        world = came_from[world]
    return story[::-1]


def _is_lost(world: World) -> bool:
    on_its_way = (world.rung, world.messages, world.asked, world.beat is not None, world.unmute)
    return world.job is Job.WAITS and world.came is Came.SLEEPS and not any(on_its_way)


def _moves(world: World, rules: Rules) -> Iterator[World]:
    yield from _newcomers(world)
    yield from _first_ones(world, rules)
    if world.job is Job.NOT_YET:
        heard = not world.muted and world.came >= Came.LISTENS
        yield world._replace(job=Job.WAITS, rung=world.rung or heard)
    if world.forged:
        for message in FORGED:
            messages = (*world.messages, message)
            yield world._replace(forged=world.forged - 1, messages=messages)


def _newcomers(world: World) -> Iterator[World]:
    match world.came:
        case Came.NOT_YET:
            yield world._replace(came=Came.REGISTERED)
        case Came.REGISTERED:
            messages = (*world.messages, WorkerCame(NEWCOMER))
            yield world._replace(came=Came.LISTENS, messages=messages)
        case Came.LISTENS:
            yield world._replace(came=Came.HAS_OPENED, muted=False)
        case Came.HAS_OPENED:
            yield _looked(world)._replace(came=Came.SLEEPS)
        case Came.SLEEPS:
            pass
    if world.rung:
        yield _looked(world)._replace(rung=False)


def _looked(world: World) -> World:
    return world._replace(job=Job.CLAIMED) if world.job is Job.WAITS else world


def _first_ones(world: World, rules: Rules) -> Iterator[World]:
    if world.messages:
        yield _heard(world, rules)
    if world.asked and world.beat is None:
        yield world._replace(asked=False, beat=world.came >= Came.REGISTERED)
    if world.beat is not None:
        yield _answered(world, rules)
    match world.unmute:
        case Unmute.NOT_ASKED if not _members(world.knows).kinds_differ:
            yield world._replace(muted=True)
        case Unmute.TO_OPEN:
            yield world._replace(muted=False, unmute=Unmute.TO_RING)
        case Unmute.TO_RING:
            rung = world.rung or world.came >= Came.LISTENS
            yield world._replace(unmute=Unmute.NOT_ASKED, rung=rung)
        case _:
            pass


def _heard(world: World, rules: Rules) -> World:
    message, *others = world.messages
    asked, _ = _told(world, lambda station: station.heard(message, sender=0))
    asks = asked and rules.asks and (rules.asks_anew or world.beat is None)
    after = world._replace(messages=tuple(others), asked=world.asked or asks)
    if not rules.believes_heartbeats_alone and message == WorkerLeft(NEWCOMER):
        return after._replace(knows=False, asked=world.asked)
    return after


def _answered(world: World, rules: Rules) -> World:
    listed = _listed(knows=bool(world.beat))
    _, unmutes = _told(world, lambda station: station.update_members(listed))
    after = world._replace(knows=bool(world.beat), beat=None)
    return after._replace(unmute=Unmute.TO_OPEN) if unmutes and rules.unmutes else after


def _told(world: World, tell: Any) -> tuple[bool, bool]:
    """Tell it to the first worker; whether it asks for a heartbeat, and whether it unmutes."""
    asked, soon = list[None](), list[None]()

    def note(task: Coroutine[Any, Any, None]) -> None:
        task.close()
        soon.append(None)

    nothing: Any = SimpleNamespace(up=lambda _: None, queue="default", is_muting=True)
    reasons: Any = SimpleNamespace(wake=nothing, slots=nothing, timer=nothing, poller=nothing)
    tell(
        QueueStation(
            nothing,
            reasons,
            _members(world.knows),
            nothing,
            nothing,
            lambda _: False,
            lambda: asked.append(None),
            note,
        )
    )
    return bool(asked), bool(soon)


def _members(knows: bool) -> Members:  # what it is about
    members = Members(Identity(HERE, Settings().work.lease), _KINDS[HERE])
    members.update(_listed(knows=knows))
    return members


def _listed(*, knows: bool) -> dict[str, str]:
    return _KINDS if knows else {HERE: _KINDS[HERE]}
