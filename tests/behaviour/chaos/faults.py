"""Which fault happens when. Everything follows from the seed; nothing here looks at a clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.behaviour.chaos.orders import QUEUES


class What(StrEnum):
    """A kind of fault, as the log names it."""

    KILL = "SIGKILL of a worker"
    STOP = "SIGTERM of a worker"
    FREEZE_LONG = "a worker frozen for longer than its lease"
    FREEZE_SHORT = "a worker frozen for less than its lease"
    TERMINATE_SOME = "some worker connections terminated"
    TERMINATE_ALL = "all connections terminated"
    RESTART_FAST = "server restarted, fast"
    RESTART_IMMEDIATE = "server restarted, immediate"
    KILL_SERVER = "SIGKILL of the postmaster"
    LIMIT = "a connection limit"
    LOCK = "rows of jobs locked"
    LOCK_SHORT = "all of jobs locked for less than a lease"
    LOCK_LONG = "all of jobs locked for longer than a lease"
    NEWCOMER_IN_LOCK = "a newcomer while all of jobs is locked"
    NEWCOMER_AFTER_LOCK = "a newcomer as a lock on all of jobs ends"
    NEWCOMER_WITHOUT_SERVER = "a newcomer while the server is away"
    CLOCK = "the server's clock set"
    FULL_QUEUE = "the queue of notifications full"
    PAUSE = "a queue paused"


SERVER = frozenset(
    {
        What.RESTART_FAST,
        What.RESTART_IMMEDIATE,
        What.KILL_SERVER,
        What.NEWCOMER_WITHOUT_SERVER,
    }
)
BETWEEN_SERVER_FAULTS = 12.0
"""Seconds; who starts the server again gives up on one that dies young too often."""
_DECK = [
    What.KILL,
    What.KILL,
    What.KILL,
    What.STOP,
    What.STOP,
    What.FREEZE_LONG,
    What.FREEZE_LONG,
    What.FREEZE_SHORT,
    What.TERMINATE_SOME,
    What.TERMINATE_SOME,
    What.TERMINATE_ALL,
    What.RESTART_FAST,
    What.RESTART_IMMEDIATE,
    What.KILL_SERVER,
    What.LIMIT,
    What.LOCK,
    What.LOCK,
    What.LOCK_LONG,
    What.NEWCOMER_AFTER_LOCK,
    What.NEWCOMER_WITHOUT_SERVER,
    What.CLOCK,
    What.FULL_QUEUE,
    What.PAUSE,
]
_DECK_WITH_ALL_HEARD = [
    What.KILL,
    What.STOP,
    What.LOCK,
    What.LOCK_SHORT,
    What.LOCK_SHORT,
    What.LOCK_LONG,
    What.LOCK_LONG,
    What.NEWCOMER_IN_LOCK,
    What.NEWCOMER_IN_LOCK,
    What.NEWCOMER_AFTER_LOCK,
    What.NEWCOMER_AFTER_LOCK,
    What.CLOCK,
    What.CLOCK,
    What.FULL_QUEUE,
    What.FULL_QUEUE,
    What.PAUSE,
]
"""Faults that keep no live worker from its heartbeat."""
_ALL_HEARD = (0.45, 0.7)
"""The share of the time with these alone: nobody who lives may be declared dead then. Elsewhere
nearly every moment is soon after a fault that excuses it.
"""
_FIRST, _LAST = 0.08, 0.9
"""The share of the time within which faults begin."""
_LONGEST_STEP = 150.0
_STEP_SHARE = 0.25
"""A clock is set by this share of the run's time at most: what was due by a clock that was ahead
becomes due when the true time has come there.
"""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A worker process beside the others."""

    after: float
    """It starts so many seconds after what it meets."""
    lives: float
    is_killed: bool
    """Else it is told to stop."""

    def __str__(self) -> str:
        end = "killed" if self.is_killed else "stopped"
        return f"it starts after {self.after:.1f} s, {end} {self.lives:.1f} s later"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; what a field means depends on the kind."""

    at: float
    what: What
    worker: int
    seconds: float
    """How long it lasts, or until the worker is started again."""
    share: float
    """The share of connections or of jobs that it hits."""
    limit: int
    queue: str
    step: float
    """Seconds by which a clock is set, forward or back."""
    newcomer: Newcomer

    def __str__(self) -> str:
        match self.what:
            case What.KILL | What.STOP:
                more = f": {self.worker}, started again {self.seconds:.1f} s after its end"
            case What.FREEZE_LONG | What.FREEZE_SHORT:
                more = f": {self.worker}, for {self.seconds:.1f} s"
            case What.TERMINATE_SOME:
                more = f": {self.share:.0%}"
            case What.LIMIT:
                more = f" of {self.limit} for {self.seconds:.1f} s"
            case What.LOCK:
                more = f": {self.share:.0%} of them for {self.seconds:.1f} s"
            case What.PAUSE:
                more = f": {self.queue}, for {self.seconds:.1f} s"
            case What.LOCK_SHORT | What.LOCK_LONG | What.FULL_QUEUE:
                more = f": {self.seconds:.1f} s"
            case What.NEWCOMER_IN_LOCK | What.NEWCOMER_AFTER_LOCK | What.NEWCOMER_WITHOUT_SERVER:
                more = f": {self.seconds:.1f} s; {self.newcomer}"
            case What.CLOCK:
                more = f": {self.step:+.1f} s, for {self.seconds:.1f} s"
            case _:
                more = ""
        return f"{self.what}{more}"


def plan(seed: int, seconds: float, workers: int, lease: float, every: float = 2.5) -> list[Fault]:
    """Faults about `every` so many seconds, five at least, all kinds in turn."""
    chance = random.Random(f"faults of {seed}")
    first, last = _FIRST * seconds, _LAST * seconds
    count = max(5, round((last - first) / every))
    gap = (last - first) / count
    longest_step = min(_LONGEST_STEP, _STEP_SHARE * seconds)
    decks = {False: _Deck(_DECK, chance), True: _Deck(_DECK_WITH_ALL_HEARD, chance)}
    faults: list[Fault] = []
    server_may_fail_at = 0.0
    for number in range(count):
        at = first + gap * (number + 0.8 * chance.random())
        deck = decks[_ALL_HEARD[0] <= at / seconds < _ALL_HEARD[1]]
        what = deck.draw(without=SERVER if at < server_may_fail_at else frozenset())
        if what in SERVER:
            server_may_fail_at = at + BETWEEN_SERVER_FAULTS
        faults.append(_fault(what, at, workers, lease, longest_step, chance))
    return faults


class _Deck:
    """Each of its cards is drawn before one is drawn again."""

    def __init__(self, cards: Sequence[What], chance: random.Random) -> None:
        self._cards = cards
        self._chance = chance
        self._left: list[What] = []

    def draw(self, without: frozenset[What]) -> What:
        """The next one that may be."""
        possible = [what for what in self._left if what not in without]
        if not possible:
            self._left += self._chance.sample(self._cards, len(self._cards))
            possible = [what for what in self._left if what not in without]
        self._left.remove(possible[0])
        return possible[0]


def _fault(
    what: What, at: float, workers: int, lease: float, longest_step: float, chance: random.Random
) -> Fault:
    match what:
        case What.FREEZE_LONG | What.LOCK_LONG:
            seconds = lease * chance.uniform(1.3, 2.5)
        case What.FREEZE_SHORT | What.LOCK_SHORT:
            seconds = lease * chance.uniform(0.2, 0.7)
        case What.NEWCOMER_IN_LOCK | What.NEWCOMER_AFTER_LOCK | What.NEWCOMER_WITHOUT_SERVER:
            seconds = lease * chance.uniform(0.5, 2)
        case _:
            seconds = chance.uniform(0.2, 4)
    # A process needs about a second until it registers.
    after = seconds - chance.random() if what is What.NEWCOMER_AFTER_LOCK else chance.random()
    size = min(2.0, longest_step) * max(1.0, longest_step / 2) ** chance.random()
    return Fault(
        at=at,
        what=what,
        worker=chance.randrange(workers),
        seconds=seconds,
        share=chance.uniform(0.1, 0.6),
        limit=chance.randrange(6),
        queue=chance.choice(QUEUES),
        step=size * chance.choice([-1, 1]),
        newcomer=Newcomer(max(0.0, after), lease * chance.uniform(1, 3), chance.random() < 0.5),
    )
