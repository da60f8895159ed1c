"""Walks every interleaving of callers that say `follow`, the ends of whoever has the key, and
workers that claim what waits for it, by the rules of join_key.sql, pass_keys.sql and
begin_successor.sql.

A world is bad when all is quiet and a job sleeps although nobody has its key, or when the last call
that was committed was seen by no run that began afterwards. Two cannot have one key: an index sees
to that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class Call(Enum):
    """How far a caller is."""

    NOT_YET = 0
    IN_FLIGHT = 1
    DONE = 2


class Holder(Enum):
    """The job that has the key."""

    NONE = 0
    RUNS = 1
    IS_ENDED = 2  # in a transaction that has not looked for who waits, and is not committed
    IS_PASSED_ON = 3  # it has looked


class Place(Enum):
    """What the job that waits is."""

    AWAKE = 0
    CLAIMED = 1  # by a worker that has not asked yet
    ASLEEP = 2
    HAS_KEY = 3  # and is queued


class Waiting(NamedTuple):
    """The job that waits, as it is committed or will be."""

    place: Place
    call: int
    """Whose values it has."""
    claimed: int = -1
    """Whose values the worker was given that claimed it."""


class Rules(NamedTuple):
    """What the parts must keep; tests drop them one at a time."""

    due_when_stored: bool = True
    """Dropped: it sleeps from the beginning, and the end of the holder has to find it."""
    due_when_changed: bool = True
    """Dropped: whoever changes one that sleeps lets it sleep on."""
    void_claims: bool = True
    """Dropped: whoever changes one that was claimed leaves the claim as it is."""
    ask_with_lock: bool = True
    """Dropped: the worker that asks reads the holder, which may end while it asks."""
    look_after_end: bool = True
    """Dropped: whoever ends the holder looks for who waits first."""
    guarantee: bool = False
    """Somebody looks for those that sleep for a key that nobody has once in a while."""


class World(NamedTuple):
    """All that is shared."""

    calls: tuple[Call, ...]
    holder: Holder = Holder.RUNS
    waiting: Waiting | None = None
    writer: str | int = ""
    """Who has a lock on the one that waits, or is storing it: a caller, `end` or `ask`."""
    will_be: Waiting | None = None
    """What the writer makes of it."""
    found: bool = False
    """Whoever ends the holder has looked already; a dropped rule."""
    last: int = -1
    """The last call that was committed."""
    is_seen: bool = True
    """Whether a run began afterwards with its values."""
    rollbacks: int = 0
    """How many may still come."""


class Explored(NamedTuple):
    """How many worlds there are, and the shortest way to one that is bad."""

    worlds: int
    story: list[World]


def explore(calls: int, rollbacks: int = 0, rules: Rules = Rules()) -> Explored:  # noqa: B008  # frozen
    """Walk until nothing is new, or something is bad."""
    start = World((Call.NOT_YET,) * calls, rollbacks=rollbacks)
    came_from: dict[World, World | None] = {start: None}
    todo = deque([start])
    while todo:
        world = todo.popleft()
        moves = list(_moves(world, rules))
        if not moves and (world.waiting is not None or not world.is_seen):
            story = [world]
            while (before := came_from[story[0]]) is not None:
                story.insert(0, before)
            return Explored(len(came_from), story)
        for after in moves:
            if after not in came_from:
                came_from[after] = world
                todo.append(after)
    return Explored(len(came_from), [])


def _moves(world: World, rules: Rules) -> Iterator[World]:
    for number, call in enumerate(world.calls):
        if call is Call.NOT_YET:
            yield from _called(world, number, rules)
        elif call is Call.IN_FLIGHT:
            yield _committed(_with_call(world, number, Call.DONE))._replace(
                last=number, is_seen=False
            )
            if world.rollbacks:
                undone = _with_call(world, number, Call.DONE)
                yield undone._replace(writer="", will_be=None, rollbacks=world.rollbacks - 1)
    yield from _ends(world, rules)
    yield from _works(world, rules)


def _with_call(world: World, number: int, call: Call) -> World:
    calls = list(world.calls)
    calls[number] = call
    return world._replace(calls=tuple(calls))


def _committed(world: World) -> World:
    return world._replace(waiting=world.will_be, writer="", will_be=None)


def _called(world: World, number: int, rules: Rules) -> Iterator[World]:
    """What it saw of the holder may be long over: it stores one behind it all the same."""
    if world.writer != "":
        return  # it waits for that one
    before, begun = world.waiting, _with_call(world, number, Call.IN_FLIGHT)
    if before is None:
        place = Place.AWAKE if rules.due_when_stored else Place.ASLEEP
        yield begun._replace(writer=number, will_be=Waiting(place, number))
    elif before.place is Place.CLAIMED and not rules.void_claims:
        yield begun._replace(writer=number, will_be=before._replace(call=number))
    elif before.place is Place.HAS_KEY:
        yield begun._replace(writer=number, will_be=Waiting(Place.HAS_KEY, number))
    else:
        sleeps_on = before.place is Place.ASLEEP and not rules.due_when_changed
        place = Place.ASLEEP if sleeps_on else Place.AWAKE
        yield begun._replace(writer=number, will_be=Waiting(place, number))


def _ends(world: World, rules: Rules) -> Iterator[World]:
    """The statement that ends the holder."""
    asks = world.writer == "ask" and rules.ask_with_lock
    match world.holder:
        case Holder.RUNS if not rules.look_after_end and not world.found:
            yield from _passed_on(world._replace(found=True), world.holder)
        case Holder.RUNS if not asks:
            looked = world.found
            yield world._replace(holder=Holder.IS_PASSED_ON if looked else Holder.IS_ENDED)
        case Holder.IS_ENDED:
            yield from _passed_on(world, Holder.IS_PASSED_ON)
        case Holder.IS_PASSED_ON:
            ended = world._replace(holder=Holder.NONE, found=False)
            yield _committed(ended) if world.writer == "end" else ended
        case _:
            pass


def _passed_on(world: World, then: Holder) -> Iterator[World]:
    """One that is claimed is left to its worker; one that somebody holds is passed by."""
    waiting = world.waiting
    if waiting is None or waiting.place is Place.CLAIMED or world.writer != "":
        yield world._replace(holder=then)
    else:
        given = Waiting(Place.HAS_KEY, waiting.call)
        yield world._replace(holder=then, writer="end", will_be=given)


def _works(world: World, rules: Rules) -> Iterator[World]:
    """Claims pass over what somebody has a lock on."""
    waiting = world.waiting
    if world.writer == "ask":
        yield _committed(world)
    if waiting is None or world.writer != "":
        return
    match waiting.place:
        case Place.AWAKE:
            yield world._replace(waiting=Waiting(Place.CLAIMED, waiting.call, waiting.call))
        case Place.CLAIMED if world.holder is Holder.RUNS:
            yield world._replace(writer="ask", will_be=Waiting(Place.ASLEEP, waiting.call))
        case Place.CLAIMED if world.holder is Holder.NONE:
            yield _run(world, waiting.claimed)
        case Place.CLAIMED:  # it cannot be told: asked again later
            if rules.ask_with_lock:
                yield world._replace(waiting=Waiting(Place.AWAKE, waiting.call))
            else:
                yield world._replace(writer="ask", will_be=Waiting(Place.ASLEEP, waiting.call))
        case Place.HAS_KEY if world.holder is Holder.NONE:
            yield _run(world, waiting.call)
        case Place.ASLEEP if world.holder is Holder.NONE and rules.guarantee:
            yield world._replace(waiting=Waiting(Place.HAS_KEY, waiting.call))
        case _:
            pass


def _run(world: World, call: int) -> World:
    """It is the holder from now on."""
    seen = world.is_seen or call == world.last
    return world._replace(holder=Holder.RUNS, waiting=None, is_seen=seen)
