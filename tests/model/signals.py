"""Walks every interleaving of one job that is stored and waits for a key again and again, the
transactions that signal it, and the workers that number signals and wake it, by the rules of
sql/queries/number_signals.sql, sql/functions/wake_waiting.sql and take_signals.sql. It waits by
Snooze, and each signal wakes it once, or by Repeat, and takes all that are there.

A world is bad when no look for the job is due although it waits, and a signal has not reached it
that was committed once the job was stored. Its time-out does not count, and may not come to a job
whose signal is there. Nor may the job be given one signal twice, or one that a worker had numbered
before it was stored, lose one that it was given, or be woken for nothing.
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


class Number(IntEnum):
    """What the number of a signal says of the job: it is for those with lower ids."""

    NOT_YET = 0
    FOR_IT = 1
    NOT_FOR_IT = 2
    WRITTEN_FOR_IT = 3  # by a statement that is not committed
    WRITTEN_NOT_FOR_IT = 4


class Phase(IntEnum):
    """What the job does."""

    RUNS = 0
    IS_PUT_BACK = 1  # the statement runs, and is not committed
    WAITS = 2
    DUE = 3
    ABSENT = 4
    IS_STORED = 5  # it has its id, and is not committed


class Rules(NamedTuple):
    """What the parts must keep; tests drop them one at a time."""

    ring_after_commit: bool = True
    """A committed signal is heard of. Dropped: whoever signals wakes the job in its own transaction
    if it waits, and nobody hears of it afterwards.
    """
    number_after_commit: bool = True
    """Workers number a signal once they see it. Dropped: it has its number from its INSERT on."""
    number_once: bool = True
    look_after_number: bool = True
    """Dropped: the statement that numbers signals wakes the jobs that wait for them, too."""
    wake_for_numbered: bool = True
    """Dropped: a signal without a number wakes all jobs that wait for it."""
    take_unnumbered: bool = True
    """An attempt is given what is there, numbered or not."""
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
    numbers: tuple[Number, ...]
    phase: Phase = Phase.ABSENT
    version: int = 0
    """How often the job was put back: each time it waits anew."""
    has_waited: bool = False
    owed: int = 0
    """Committed once the job was stored."""
    older: int = 0
    """Numbered before the job was stored."""
    given: int = 0
    """What the rows of `waits` say."""
    highest: int = -1
    current: int = 0
    """What it was given for this wait; a bit behind those of the signals is its time-out."""
    handled: int = 0
    ring_due: bool = False
    look_due: bool = False
    """The worker that put it back is going to look."""
    wake_due: bool = False
    """A worker that has numbered signals is going to look."""
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
    timeouts: int = 0
    """How many may still come."""
    is_by_clock: bool = False
    """Its time-out made it due."""
    fault: str = ""


class Explored(NamedTuple):
    """What was found: how many worlds, and the shortest way to one that is bad."""

    worlds: int
    story: list[World]


def explore(
    signals: int,
    crashes: int = 0,
    timeouts: int = 0,
    rules: Rules = Rules(),  # noqa: B008  # frozen
) -> Explored:
    """Walk until nothing is new, or something is bad."""
    start = World(
        (Sent.NOT_YET,) * signals,
        (Number.NOT_YET,) * signals,
        crashes=crashes,
        timeouts=timeouts,
    )
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
    is_expected = (
        world.ring_due
        or world.look_due
        or world.wake_due
        or world.version in world.asked
        or any(number >= Number.WRITTEN_FOR_IT for number in world.numbers)
    )
    return (
        world.phase is Phase.WAITS
        and not world.current
        and world.owed & ~world.given != 0
        and not is_expected
        and not (rules.guarantee and _takeable(world, rules))
    )


def _takeable(world: World, rules: Rules) -> int:
    """The signals that the job would be given now."""
    return _open(world, rules, rules.take_unnumbered)


def _wakes(world: World, rules: Rules) -> bool:
    """Whether there is a signal for which the job is woken."""
    return _open(world, rules, not rules.wake_for_numbered) != 0


def _open(world: World, rules: Rules, with_unnumbered: bool) -> int:  # of rules
    counting = {Number.FOR_IT}
    if with_unnumbered:
        counting |= {Number.NOT_YET, Number.WRITTEN_FOR_IT, Number.WRITTEN_NOT_FOR_IT}
    taken = 0
    for place, sent in enumerate(world.signals):
        is_new = rules.remember_each or place > world.highest
        if (
            sent is Sent.COMMITTED
            and world.numbers[place] in counting
            and not world.given >> place & 1
            and is_new
        ):
            taken |= 1 << place
            if not rules.takes_all:
                break
    return taken


def _moves(world: World, rules: Rules) -> Iterator[World]:
    yield from _of_senders(world, rules)
    yield from _of_the_job(world, rules)
    yield from _of_wakers(world, rules)
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


def _of_wakers(world: World, rules: Rules) -> Iterator[World]:
    if world.ring_due:
        yield _numbering(world._replace(ring_due=False), rules)
    for place, number in enumerate(world.numbers):
        if number >= Number.WRITTEN_FOR_IT:
            yield _numbered(world, place, rules)
    if world.wake_due:
        yield _ask(world._replace(wake_due=False), rules)
    if world.look_due:
        yield _ask(world._replace(look_due=False), rules)
    if world.crashes:
        crashes = world.crashes - 1
        yield world._replace(ring_due=False, crashes=crashes)
        yield world._replace(wake_due=False, crashes=crashes)
        yield world._replace(look_due=False, crashes=crashes)
    if rules.guarantee:
        yield _numbering(world, rules)


def _of_senders(world: World, rules: Rules) -> Iterator[World]:
    for number, sent in enumerate(world.signals):
        match sent:
            case Sent.NOT_YET:
                wakes = not rules.ring_after_commit and world.phase is Phase.WAITS
                after = _sent(world, number, Sent.IN_FLIGHT_WAKING if wakes else Sent.IN_FLIGHT)
                if not rules.number_after_commit:
                    is_stored = world.phase is not Phase.ABSENT
                    value = Number.FOR_IT if is_stored else Number.NOT_FOR_IT
                    after = _with_number(after, number, value)
                yield after
            case Sent.IN_FLIGHT:
                after = _committed(world, number)
                yield after._replace(ring_due=True) if rules.ring_after_commit else after
            case Sent.IN_FLIGHT_WAKING:
                yield _committed(world, number)._replace(phase=Phase.DUE, is_rung=True)
            case Sent.COMMITTED:
                pass


def _committed(world: World, number: int) -> World:
    is_stored = world.phase is not Phase.ABSENT
    after = _sent(world, number, Sent.COMMITTED)
    return after._replace(owed=after.owed | is_stored << number)


def _sent(world: World, number: int, sent: Sent) -> World:
    signals = (*world.signals[:number], sent, *world.signals[number + 1 :])
    return world._replace(signals=signals)


def _with_number(world: World, place: int, number: Number) -> World:
    numbers = (*world.numbers[:place], number, *world.numbers[place + 1 :])
    return world._replace(numbers=numbers)


def _numbering(world: World, rules: Rules) -> World:
    """A worker begins to number all signals that it sees without a number, and looks then.

    Those that it has a lock on are passed over by others.
    """
    is_stored = world.phase is not Phase.ABSENT
    value = Number.WRITTEN_FOR_IT if is_stored else Number.WRITTEN_NOT_FOR_IT
    after = world
    for place, number in enumerate(world.numbers):
        is_new = number is Number.NOT_YET or (
            not rules.number_once and number < Number.WRITTEN_FOR_IT
        )
        if world.signals[place] is Sent.COMMITTED and is_new and rules.number_after_commit:
            after = _with_number(after, place, value)
    if after is world:
        return _ask(world, rules)
    if rules.look_after_number:
        return after
    is_for_it = is_stored and _takeable(world, rules) != 0
    return _asked(after) if is_for_it and _is_open_to_signals(world, rules) else after


def _numbered(world: World, place: int, rules: Rules) -> World:
    """Its number is committed."""
    is_for_it = world.numbers[place] is Number.WRITTEN_FOR_IT
    after = _with_number(world, place, Number.FOR_IT if is_for_it else Number.NOT_FOR_IT)
    is_older = world.phase is Phase.ABSENT
    return after._replace(
        older=after.older | is_older << place, wake_due=after.wake_due or rules.look_after_number
    )


def _of_the_job(world: World, rules: Rules) -> Iterator[World]:
    match world.phase:
        case Phase.ABSENT:
            yield world._replace(phase=Phase.IS_STORED)
        case Phase.IS_STORED:
            yield world._replace(phase=Phase.DUE, is_rung=True)
        case Phase.RUNS:
            # A statement that looks before it is committed sees what was committed before it began.
            sees = not rules.look_after_commit and _wakes(world, rules)
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
            elif world.timeouts:
                timeouts = world.timeouts - 1
                yield world._replace(
                    phase=Phase.DUE, is_rung=True, is_by_clock=True, timeouts=timeouts
                )
        case Phase.DUE:
            pass


def _looked(world: World, rules: Rules) -> World:
    """A worker looks for due jobs; it passes over one that is locked."""
    looked = world._replace(is_rung=False)
    return _claimed(looked, rules) if world.phase is Phase.DUE and not world.locks else looked


def _handled(world: World) -> World:
    signals = world.current & (1 << len(world.signals)) - 1
    fault = "a signal was given twice" if world.handled & signals else ""
    return world._replace(handled=world.handled | signals, fault=fault)


def _claimed(world: World, rules: Rules) -> World:
    """The attempt takes what it was woken for."""
    runs = world._replace(phase=Phase.RUNS, is_by_clock=False)
    if not world.has_waited:
        return runs
    if world.current and rules.remember_the_wait:
        return runs
    if world.current:
        runs = runs._replace(fault="a signal was lost with the attempt that it was given to")
    taken = _takeable(world, rules)
    if not taken and world.is_by_clock:
        is_there = world.owed & ~world.given
        fault = "its time-out came although its signal was there" if is_there else ""
        return runs._replace(current=1 << len(world.signals), fault=runs.fault or fault)
    if not taken:
        return runs._replace(fault=runs.fault or "the job was woken for nothing")
    if taken & world.older:
        runs = runs._replace(fault="it was given what was numbered before it was stored")
    highest = max(taken.bit_length() - 1, world.highest)
    return runs._replace(current=taken, given=world.given | taken, highest=highest)


def _ask(world: World, rules: Rules) -> World:
    """The statement that wakes takes its snapshot."""
    is_open = _is_open_to_signals(world, rules) and _wakes(world, rules)
    is_wanted = is_open or not rules.only_for_signals
    return _asked(world) if world.phase is Phase.WAITS and is_wanted else world


def _asked(world: World) -> World:
    return world._replace(asked=(*world.asked, world.version)[-MOST_ASKED:])


def _is_open_to_signals(world: World, rules: Rules) -> bool:
    """Whether it waits, and nothing was given to it for this wait."""
    return world.phase is Phase.WAITS and not (world.current and rules.not_once_given)
