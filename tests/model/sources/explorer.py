"""Walks every interleaving of what an application does to its rows with what workers do to their
jobs, and with what is written later.

A world is bad when a fault was made on the way to it, when transactions wait for each other, or
when everybody rests and a row is not as it should be. Nothing is bad about worlds from which the
workers alone do not come to rest, because there must be none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, cast

from tests.model.sources.moves import turns
from tests.model.sources.turn import Waits
from tests.model.sources.worlds import (
    COMMIT,
    Budget,
    Decide,
    Job,
    Key,
    Phase,
    Row,
    Rules,
    Statement,
    Work,
    World,
)

EDITS = frozenset({"insert", "arm", "unfit", "stop", "finish", "delete"})
RUNS = Key(Row("running", 1), Job(1, Phase.HANDLED, 1))
"""A row whose job runs, as it shows."""
RUNNING = (Phase.CLAIMED, Phase.HANDLED, Phase.REFUSED)


class Explored(NamedTuple):
    """What was found: how many worlds, what is wrong, and the shortest way to it."""

    worlds: int
    fault: str
    story: list[str]


class Move(NamedTuple):
    """What may happen."""

    label: str
    after: World
    by_itself: bool
    """The application may stop, and so may crashes; what is under way goes on."""


class Explorer:
    """All worlds that can be reached."""

    def __init__(
        self,
        decide: Decide,
        start: tuple[Key, ...] = (Key(),),
        budget: Budget = Budget(),  # noqa: B008  # frozen
        rules: Rules = Rules(),  # noqa: B008  # frozen
        applications: int = 1,
        edits: frozenset[str] = EDITS,
    ) -> None:
        self._decide, self._rules, self._kinds = decide, rules, edits
        self._start = World(start, budget)
        self._applications = [f"application {number}" for number in range(1, applications + 1)]

    def explore(self, most: int = 1_000_000) -> Explored:
        """Walk until nothing is new, or something is wrong."""
        worlds = [self._start]
        number = {self._start: 0}
        came_from: list[tuple[int, str]] = [(0, "")]
        led_from: list[list[int]] = [[]]
        at_rest: list[int] = []
        todo = deque([0])
        while todo:
            here = todo.popleft()
            world = worlds[here]
            moves, fault = self.following(world)
            if fault:
                return Explored(len(worlds), fault, _story(worlds, came_from, here))
            if not any(move.by_itself for move in moves):
                at_rest.append(here)
            for move in moves:
                there = number.get(move.after)
                if there is None:
                    there = number[move.after] = len(worlds)
                    worlds.append(move.after)
                    came_from.append((here, move.label))
                    led_from.append([])
                    todo.append(there)
                    assert there < most, "more worlds than expected"
                if move.by_itself:
                    led_from[there].append(here)
        restless = _never_at_rest(len(worlds), at_rest, led_from)
        if restless is not None:
            return Explored(len(worlds), "never at rest", _story(worlds, came_from, restless))
        return Explored(len(worlds), "", [])

    def following(self, world: World) -> tuple[list[Move], str]:
        """What may happen next, and what is wrong by now."""
        if fault := world.fault or _shows_what_is_not(world):
            return [], fault
        moves, waits = [], {}
        for label, outcome in turns(world, self._rules, self._decide):
            if isinstance(outcome, Waits):
                if not outcome.briefly:
                    waits[outcome.place] = outcome.places
            else:
                moves.append(Move(label, outcome, by_itself=True))
        if _has_circle(waits, world):
            return [], "transactions wait for each other"
        moves += [Move(label, after, by_itself=True) for label, after in self._of_system(world)]
        moves = [move for move in moves if move.after != world]
        moves += [Move(*one) for one in self._of_application(world)]
        if not any(move.by_itself for move in moves) and (fault := _at_rest(world)):
            return [], fault
        moves += [Move(label, after, by_itself=False) for label, after in _of_chance(world)]
        return moves, ""

    # --- the application

    def _of_application(self, world: World) -> Iterator[tuple[str, World, bool]]:
        for who in self._applications:
            own = [work for work in world.works if work.who == who]
            others = tuple(work for work in world.works if work.who != who)
            if not own:
                for edit in self._edits(world, Work(who)):
                    left = world.left._replace(edits=world.left.edits - 1)
                    works = tuple(sorted((*others, Work(who, (edit,)))))
                    yield f"{who} begins: {edit}", world._replace(works=works, left=left), False
                continue
            [work] = own
            if work.todo:
                continue
            committing = work._replace(todo=(COMMIT,))
            yield (
                f"{who} is going to commit",
                world._replace(works=tuple(sorted((*others, committing)))),
                True,
            )
            yield f"{who} rolls back", world._replace(works=others), False
            for edit in self._edits(world, work):
                left = world.left._replace(edits=world.left.edits - 1)
                works = tuple(sorted((*others, work._replace(todo=(edit,)))))
                yield f"{who}: {edit}", world._replace(works=works, left=left), False

    def _edits(self, world: World, work: Work) -> Iterator[Statement]:
        if world.left.edits:
            for edit in self._possible_edits(world, work):
                if edit.what in self._kinds:
                    yield edit

    def _possible_edits(self, world: World, work: Work) -> Iterator[Statement]:
        own = dict(work.wrote)
        for key, committed in enumerate(world.keys):
            row = cast("Row | None", own.get((key, "row"), committed.row))
            if row is None:
                yield Statement("insert", key)
                continue
            yield from (Statement("arm", key), Statement("delete", key))
            if row.shows in ("queued", "running"):
                yield from (Statement("stop", key), Statement("unfit", key))
            if row.shows == "running":
                yield Statement("finish", key)

    # --- workers, and whoever helps them

    def _of_system(self, world: World) -> Iterator[tuple[str, World]]:
        busy = {(work.who, one.key) for work in world.works for one in (*work.todo, *_locked(work))}
        locked = {cell for work in world.works for cell in work.locks}
        begin: dict[Phase, list[int]] = {phase: [] for phase in Phase}
        for place, key in enumerate(world.keys):
            if key.late is not None and ("late", place) not in busy:
                yield _begun(world, "late", Statement("look at late row", place))
            if key.noted and ("change", place) not in busy:
                yield _begun(world, "change", Statement("look at change", place))
            if key.job is not None and (place, "job") not in locked:
                who = {Phase.CLAIMED: "show", Phase.ORPHANED: "rescue"}.get(key.job.phase, "settle")
                if (who, place) not in busy:
                    begin[key.job.phase].append(place)
        for place in (*begin[Phase.QUEUED], *begin[Phase.SNOOZED]):
            yield f"claim {place}", self._claimed(world, place)
        yield from self._goes_on(world, begin)

    def _goes_on(self, world: World, begin: dict[Phase, list[int]]) -> Iterator[tuple[str, World]]:
        """With jobs that were claimed."""
        for place in begin[Phase.REFUSED]:
            yield self._settled(world, [place], "end", "cancelled")
        for place in begin[Phase.ORPHANED]:
            yield self._settled(world, [place], "put back", "queued", who="rescue")
        for places in _subsets(begin[Phase.CLAIMED]):
            yield self._settled(world, places, "show", "running", who="show")
        for places in _subsets(begin[Phase.HANDLED]):
            yield from self._ways_to_end(world, places)

    def _claimed(self, world: World, place: int) -> World:
        key = world.keys[place]
        job, row = cast("Job", key.job), key.row
        if not self._rules.read_when_shown and row is not None:
            row = row._replace(is_unread=False)
        job = job._replace(phase=Phase.CLAIMED, claim=job.claim + 1)
        return _with_key(world, place, key._replace(job=job, row=row))

    def _ways_to_end(self, world: World, places: list[int]) -> Iterator[tuple[str, World]]:
        yield self._settled(world, places, "end", "completed")
        if any(job is not None and job.told_by for job in (world.keys[p].job for p in places)):
            yield self._settled(world, places, "end", "cancelled")
        left = world.left
        if left.beats and len(places) == 1:
            spent = world._replace(left=left._replace(beats=left.beats - 1))
            yield self._settled(spent, places, "beat", "beat")
        if left.put_backs:
            spent = world._replace(left=left._replace(put_backs=left.put_backs - 1))
            yield self._settled(spent, places, "put back", "queued")
            yield self._settled(spent, places, "put back", "snoozed")

    def _settled(
        self, world: World, places: list[int], what: str, state: str, who: str = "settle"
    ) -> tuple[str, World]:
        claims = {place: job.claim for place in places if (job := world.keys[place].job)}
        ends = [Statement(what, place, state, claim) for place, claim in claims.items()]
        writes = [Statement("write", place, state) for place in places]
        between = [COMMIT] if who == "settle" and not self._rules.one_transaction else []
        return _begun(world, who, *ends, *between, *writes)


def _locked(work: Work) -> Iterator[Statement]:
    return (Statement("", key) for key, _ in work.locks)


def _subsets(places: list[int]) -> Iterator[list[int]]:
    for place in places:
        yield [place]
    if len(places) > 1:
        yield places


def _begun(world: World, who: str, *todo: Statement) -> tuple[str, World]:
    work = Work(who, (*todo, COMMIT))
    label = f"{who} begins: {', '.join(map(str, todo))}"
    return label, world._replace(works=tuple(sorted((*world.works, work))))


def _with_key(world: World, place: int, key: Key) -> World:
    return world._replace(keys=(*world.keys[:place], key, *world.keys[place + 1 :]))


# --- what may go wrong


def _of_chance(world: World) -> Iterator[tuple[str, World]]:
    """Processes die, or seem to; somebody cancels a job, or runs it again."""
    left = world.left
    if left.crashes:
        spent = left._replace(crashes=left.crashes - 1)
        orphaned = tuple(
            key._replace(job=key.job._replace(phase=Phase.ORPHANED))
            if key.job is not None and key.job.phase in RUNNING
            else key
            for key in world.keys
        )
        if orphaned != world.keys:
            living = tuple(work for work in world.works if work.who not in ("show", "settle"))
            yield "a worker dies", world._replace(keys=orphaned, works=living, left=spent)
            yield "a worker seems dead", world._replace(keys=orphaned, left=spent)
        for place, work in enumerate(world.works):
            if work.who in ("late", "change", "rescue", "settle", "show"):
                works = (*world.works[:place], *world.works[place + 1 :])
                yield f"{work.who} is cut off", world._replace(works=works, left=spent)
    for place, key in enumerate(world.keys):
        if left.cancels and key.job is not None:
            spent = left._replace(cancels=left.cancels - 1)
            yield _begun(world._replace(left=spent), "cancel", Statement("cancel", place))
        if left.retries and key.job is None and key.ended.number:
            spent = left._replace(retries=left.retries - 1)
            yield _begun(world._replace(left=spent), "retry", Statement("retry", place))


def _shows_what_is_not(world: World) -> str:
    """While nothing is under way, and a job waits, maybe for long."""
    is_wrong = any(
        key.job is not None
        and key.job.phase is Phase.QUEUED
        and key.late is None
        and key.row is not None
        and key.row.shows == "running"
        for key in world.keys
    )
    return "a row shows running and its job waits" if is_wrong and not world.works else ""


def _at_rest(world: World) -> str:
    """What is wrong although nobody is going to do anything."""
    if world.works:
        return "transactions that nobody ends"
    for key in world.keys:
        if key.late is not None:
            return "a late row was never written"
        if key.job is not None:
            return "a job was left"
        if key.row is None:
            continue
        if key.row.is_wanted:
            return "a row is wanted and has no job"
        if key.row.shows == "running":
            return "a row was left running"
        if key.row.of_job not in (0, key.ended.number):
            return "a row shows an older job"
    return ""


def _has_circle(waits: dict[int, tuple[int, ...]], world: World) -> bool:
    """Do some wait for each other? Applications alone may: that is their own affair."""
    for first in waits:
        seen: set[int] = set()
        todo = [first]
        while todo:
            for place in waits.get(todo.pop(), ()):
                if place == first:
                    return any(
                        not world.works[one].who.startswith("application") for one in (first, *seen)
                    )
                if place not in seen:
                    seen.add(place)
                    todo.append(place)
    return False


def _never_at_rest(worlds: int, at_rest: list[int], led_from: list[list[int]]) -> int | None:
    """The first world from which nobody comes to rest."""
    comes = bytearray(worlds)
    todo = list(at_rest)
    for place in todo:
        comes[place] = 1
    while todo:
        for before in led_from[todo.pop()]:
            if not comes[before]:
                comes[before] = 1
                todo.append(before)
    return None if all(comes) else comes.find(0)


def _story(worlds: list[World], came_from: list[tuple[int, str]], place: int) -> list[str]:
    story: list[str] = []
    while place:
        before, label = came_from[place]
        story.insert(0, f"{label} -> {worlds[place].keys}")
        place = before
    return story
