"""Walks every interleaving of one job that waits for a key again and again, those who signal it,
and those who wake it, by the rules of sql/queries/wake_waiting.sql and take_signals.sql. It waits
by Snooze, and each signal wakes it once, or by Repeat, and takes all that are there.

A world is bad when nobody is about to look for the job although it waits and a committed signal has
not reached it. Its time-out does not count. Nor may it be given one signal twice, lose one that it
was given, or be woken for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

MOST_ASKED = 3
"""So many statements at once are more than make a difference."""


class Sent(IntEnum):
    """How far a signal is."""

    NOT_YET = 0
    IN_FLIGHT = 1
    COMMITTED = 2
    IN_FLIGHT_WAKING = 3  # and its transaction has changed the job, which nobody sees yet


class Phase(IntEnum):
    """What the job does."""

    RUNS = 0
    IS_PUT_BACK = 1  # the statement runs, and is not committed
    WAITS = 2
    DUE = 3


class Rules(NamedTuple):
    """What the parts must keep; tests drop them one at a time."""

    ring_after_commit: bool = True
    """A committed signal is heard of. Dropped: whoever signals wakes the job in its own transaction
    if it waits, and nobody hears of it afterwards.
    """
    look_after_commit: bool = True
    """Dropped: the statement that puts the job back looks, and nobody does later."""
    remember_each: bool = True
    """Dropped: of what a job was given, the highest number is remembered."""
    remember_the_wait: bool = True
    """An attempt that begins again is given what the one before was given for the same wait."""
    compare_versions: bool = True
    """Whoever wakes the job wakes it as it was when the signals were looked at."""
    only_for_signals: bool = True
    """Whoever wakes the job looks whether there is a signal that it was not given."""
    not_once_given: bool = True
    """Nor does anybody wake it that was given its signal, failed and waits for its next attempt."""
    ring_for_locked: bool = True
    """Whoever wanted to wake the job and came too late rings all the same."""
    takes_all: bool = False
    """No rule: the job says Repeat and not Snooze."""
    guarantee: bool = False
    """Somebody looks for all waiting jobs once in a while."""


class World(NamedTuple):
    """All that is shared. Signals are numbered, and sets of them are bits."""

    signals: tuple[Sent, ...]
    phase: Phase = Phase.RUNS
    version: int = 0
    """How often the job was put back: each time it waits anew."""
    has_waited: bool = False
    given: int = 0
    """What the rows of `waits` say."""
    highest: int = -1
    current: int = 0
    """What it was given for this wait."""
    handled: int = 0
    ring_due: bool = False
    look_due: bool = False
    """The worker that put it back is going to look."""
    asked: tuple[int, ...] = ()
    """Statements that found the job waiting in this version, and have not changed it yet."""
    is_rung: bool = False
    """A worker is going to look for due jobs."""
    locks: int = 0
    """Statements that came too late to wake the job, and have a lock on its row all the same:
    looks pass over it.
    """
    crashes: int = 0
    """How many may still come."""
    fault: str = ""


class Explored(NamedTuple):
    """What was found: how many worlds, and the shortest way to one that is bad."""

    worlds: int
    story: list[World]


def explore(signals: int, crashes: int = 0, rules: Rules = Rules()) -> Explored:  # noqa: B008  # frozen
    """Walk until nothing is new, or something is bad."""
    start = World((Sent.NOT_YET,) * signals, crashes=crashes)
    came_from: dict[World, World | None] = {start: None}
    todo = deque([start])
    while todo:
        world = todo.popleft()
        if world.fault or _is_lost(world, rules):
            return Explored(len(came_from), _story(world, came_from))
        for after in _moves(world, rules):
            if after not in came_from:
                came_from[after] = world
                todo.append(after)
    return Explored(len(came_from), [])


def _story(world: World | None, came_from: dict[World, World | None]) -> list[World]:
    story: list[World] = []
    while world is not None:
        story.insert(0, world)
        world = came_from[world]
    return story


def _is_lost(world: World, rules: Rules) -> bool:
    """Nobody is going to look for a signal, or for the job, that is there."""
    if world.phase is Phase.DUE:
        return not world.is_rung and not (world.locks and rules.ring_for_locked)
    is_expected = world.ring_due or world.look_due or world.version in world.asked
    return (
        world.phase is Phase.WAITS
        and not world.current
        and any(_is_open(world, number) for number in range(len(world.signals)))
        and not is_expected
        and not (rules.guarantee and _takeable(world, rules))
    )


def _is_open(world: World, number: int) -> bool:
    return world.signals[number] is Sent.COMMITTED and not world.given >> number & 1


def _takeable(world: World, rules: Rules) -> int:
    """The signals that the job would be given now."""
    taken = 0
    for number in range(len(world.signals)):
        if _is_open(world, number) and (rules.remember_each or number > world.highest):
            taken |= 1 << number
            if not rules.takes_all:
                break
    return taken


def _moves(world: World, rules: Rules) -> Iterator[World]:
    yield from _of_senders(world, rules)
    yield from _of_the_job(world, rules)
    if world.ring_due:
        yield _ask(world._replace(ring_due=False), rules)
    if world.look_due:
        yield _ask(world._replace(look_due=False), rules)
        if world.crashes:
            yield world._replace(look_due=False, crashes=world.crashes - 1)
    if rules.guarantee:
        yield _ask(world, rules)
    for place, version in enumerate(world.asked):
        after = world._replace(asked=world.asked[:place] + world.asked[place + 1 :])
        is_same = version == world.version or not rules.compare_versions
        if is_same and world.phase is Phase.WAITS:
            fault = "its pause was cut short" if world.current else ""
            yield after._replace(phase=Phase.DUE, is_rung=True, fault=fault)
        else:
            yield after._replace(locks=world.locks + 1)
    if world.locks:
        rung = world.is_rung or rules.ring_for_locked
        yield world._replace(locks=world.locks - 1, is_rung=rung)
    if world.is_rung:
        yield _looked(world, rules)


def _of_senders(world: World, rules: Rules) -> Iterator[World]:
    for number, sent in enumerate(world.signals):
        match sent:
            case Sent.NOT_YET:
                wakes = not rules.ring_after_commit and world.phase is Phase.WAITS
                yield _sent(world, number, Sent.IN_FLIGHT_WAKING if wakes else Sent.IN_FLIGHT)
            case Sent.IN_FLIGHT:
                after = _sent(world, number, Sent.COMMITTED)
                yield after._replace(ring_due=True) if rules.ring_after_commit else after
            case Sent.IN_FLIGHT_WAKING:
                after = _sent(world, number, Sent.COMMITTED)
                yield after._replace(phase=Phase.DUE, is_rung=True)
            case Sent.COMMITTED:
                pass


def _sent(world: World, number: int, sent: Sent) -> World:
    signals = (*world.signals[:number], sent, *world.signals[number + 1 :])
    return world._replace(signals=signals)


def _of_the_job(world: World, rules: Rules) -> Iterator[World]:
    match world.phase:
        case Phase.RUNS:
            # A statement that looks before it is committed sees what was committed before it began.
            sees = not rules.look_after_commit and _takeable(world, rules) != 0
            yield world._replace(phase=Phase.IS_PUT_BACK, look_due=sees)
            if world.crashes and world.has_waited:
                version = world.version + 1  # as everybody does who puts a job back
                crashes = world.crashes - 1
                yield world._replace(phase=Phase.WAITS, version=version, crashes=crashes)
        case Phase.IS_PUT_BACK:
            is_due = not rules.look_after_commit and world.look_due
            yield _handled(world)._replace(
                phase=Phase.DUE if is_due else Phase.WAITS,
                version=world.version + 1,
                has_waited=True,
                current=0,
                look_due=rules.look_after_commit,
                is_rung=world.is_rung or is_due,
            )
        case Phase.WAITS:
            if world.current:  # the pause before its next attempt ends
                yield world._replace(phase=Phase.DUE, is_rung=True)
        case Phase.DUE:
            pass


def _looked(world: World, rules: Rules) -> World:
    """A worker looks for due jobs; it passes over one that is locked."""
    looked = world._replace(is_rung=False)
    return _claimed(looked, rules) if world.phase is Phase.DUE and not world.locks else looked


def _handled(world: World) -> World:
    fault = "a signal was given twice" if world.handled & world.current else ""
    return world._replace(handled=world.handled | world.current, fault=fault)


def _claimed(world: World, rules: Rules) -> World:
    """The attempt takes what it was woken for."""
    runs = world._replace(phase=Phase.RUNS)
    if world.current and rules.remember_the_wait:
        return runs
    if world.current:
        runs = runs._replace(fault="a signal was lost with the attempt that it was given to")
    taken = _takeable(world, rules)
    if not taken:
        return runs._replace(fault=runs.fault or "the job was woken for nothing")
    highest = max(taken.bit_length() - 1, world.highest)
    return runs._replace(current=taken, given=world.given | taken, highest=highest)


def _ask(world: World, rules: Rules) -> World:
    """The statement that wakes takes its snapshot."""
    is_waiting = not world.current or not rules.not_once_given
    is_open = is_waiting and _takeable(world, rules) != 0
    if world.phase is Phase.WAITS and (is_open or not rules.only_for_signals):
        return world._replace(asked=(*world.asked, world.version)[:MOST_ASKED])
    return world
