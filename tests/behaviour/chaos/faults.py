"""Which fault happens when. Everything follows from the seed; nothing here looks at a clock."""

from __future__ import annotations

import random
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
    PAUSE = "a queue paused"


SERVER = frozenset({What.RESTART_FAST, What.RESTART_IMMEDIATE, What.KILL_SERVER})
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
    What.PAUSE,
]
_FIRST, _LAST = 0.08, 0.9
"""The share of the time within which faults begin."""


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
            case _:
                more = ""
        return f"{self.what}{more}"


def plan(seed: int, seconds: float, workers: int, lease: float, every: float = 3.0) -> list[Fault]:
    """Faults about `every` so many seconds, five at least, all kinds in turn."""
    chance = random.Random(f"faults of {seed}")
    first, last = _FIRST * seconds, _LAST * seconds
    count = max(5, round((last - first) / every))
    gap = (last - first) / count
    deck: list[What] = []
    faults: list[Fault] = []
    server_may_fail_at = 0.0
    for number in range(count):
        at = first + gap * (number + 0.8 * chance.random())
        possible = [what for what in deck if what not in SERVER or at >= server_may_fail_at]
        if not possible:
            deck += chance.sample(_DECK, len(_DECK))
            possible = [what for what in deck if what not in SERVER or at >= server_may_fail_at]
        what = possible[0]
        deck.remove(what)
        if what in SERVER:
            server_may_fail_at = at + BETWEEN_SERVER_FAULTS
        faults.append(_fault(what, at, workers, lease, chance))
    return faults


def _fault(what: What, at: float, workers: int, lease: float, chance: random.Random) -> Fault:
    match what:
        case What.FREEZE_LONG:
            seconds = lease * chance.uniform(1.3, 2.5)
        case What.FREEZE_SHORT:
            seconds = lease * chance.uniform(0.2, 0.7)
        case _:
            seconds = chance.uniform(0.2, 4)
    return Fault(
        at=at,
        what=what,
        worker=chance.randrange(workers),
        seconds=seconds,
        share=chance.uniform(0.1, 0.6),
        limit=chance.randrange(6),
        queue=chance.choice(QUEUES),
    )
