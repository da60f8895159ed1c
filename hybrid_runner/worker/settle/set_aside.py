"""Outcomes that cannot be written now and must not hold up the others: their rows are locked, or
Postgres refuses them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.settlements import Settlement
from hybrid_runner.policy.intervals import GrowingPause

LOCKED_PAUSE = 1.0
"""Seconds between two questions whether locked rows have come free."""
REFUSED = GrowingPause(timedelta(seconds=1), timedelta(seconds=60), 2)
"""Between two tries of an outcome that Postgres refuses."""
_MOST_NAMED = 3

Key = tuple[int, int]


@dataclass(slots=True)
class _Refused:
    settlement: Settlement
    reason: str
    tries: int
    due_at: float


class LockedRows:
    """Outcomes of jobs whose rows somebody else has locked."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._kept: list[Settlement] = []
        self.is_due = False

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Settlement]:
        return iter(self._kept)

    def add(self, settlements: Sequence[Settlement]) -> None:
        if not self._kept:
            self._ask_later()
        self._kept += settlements

    def take_all_but(self, locked: Collection[int]) -> list[Settlement]:
        """Those whose rows have come free; asked for the others again in a while."""
        free = [each for each in self._kept if each.claim.id not in locked]
        self._kept = [each for each in self._kept if each.claim.id in locked]
        self.is_due = False
        if self._kept:
            self._ask_later()
        return free

    def _ask_later(self) -> None:
        asyncio.get_running_loop().call_later(LOCKED_PAUSE, self._due)

    def _due(self) -> None:
        self.is_due = True
        self._wake()


class Refusals:
    """Outcomes that Postgres refuses, each with a pause of its own that grows."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._kept: dict[Key, _Refused] = {}
        self._tried: dict[Key, _Refused] = {}
        """Taken out to be tried again; what has become of them is not known yet."""
        self._alarm: asyncio.TimerHandle | None = None
        self._rings_at = math.inf
        self.is_due = False

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Settlement]:
        return (each.settlement for each in list(self._kept.values()))

    def known(self) -> int:
        """How many there are, those included that are tried again just now. From any thread."""
        return len(self._kept) + len(self._tried)

    def add(self, settlement: Settlement, error: RunnerError) -> float:
        """Keep it for a later try; returns in how many seconds that will be."""
        before = self._tried.pop(_key(settlement), None)
        tries = 1 if before is None else before.tries + 1
        pause = REFUSED.after(tries).total_seconds()
        due_at = time.monotonic() + pause
        self._kept[_key(settlement)] = _Refused(settlement, str(error), tries, due_at)
        self._set_alarm(due_at)
        return pause

    def is_new(self, settlement: Settlement) -> bool:
        """Whether it was never refused before."""
        return _key(settlement) not in self._tried

    def take_due(self) -> list[Settlement]:
        """Those whose pauses have ended."""
        self.is_due = False
        now = time.monotonic()
        due = {key: each for key, each in self._kept.items() if each.due_at <= now}
        self._take(due)
        if self._kept:
            self._set_alarm(min(each.due_at for each in self._kept.values()))
        return [each.settlement for each in due.values()]

    def take_all(self) -> list[Settlement]:
        """All of them, for a last try."""
        taken = dict(self._kept)
        self._take(taken)
        return [each.settlement for each in taken.values()]

    def take_alike(self, settlement: Settlement) -> list[Settlement]:
        """Postgres has taken one that it had refused: those that it refused for the same reason."""
        tried = self._tried.get(_key(settlement))
        if tried is None:
            return []
        alike = {key: each for key, each in self._kept.items() if each.reason == tried.reason}
        self._take(alike)
        return [each.settlement for each in alike.values()]

    def forget(self, settlements: Sequence[Settlement]) -> None:
        """They are written, or another worker has their jobs."""
        if self._tried:
            for settlement in settlements:
                self._tried.pop(_key(settlement), None)

    def summary(self) -> str:
        """Which jobs' outcomes are refused, and why; empty if none is. From any
        thread.
        """
        kept = [*self._kept.values(), *self._tried.values()]
        if not kept:
            return ""
        named = [
            f"job {each.settlement.claim.id} ({each.settlement.claim.kind}): {each.reason}"
            for each in kept[:_MOST_NAMED]
        ]
        more = len(kept) - len(named)
        return "; ".join(named) + (f"; and {more:,} more" if more else "")

    def _take(self, some: Mapping[Key, _Refused]) -> None:
        for key in some:
            del self._kept[key]
        self._tried |= some

    def _set_alarm(self, due_at: float) -> None:
        if self._rings_at <= due_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._rings_at = due_at
        self._alarm = asyncio.get_running_loop().call_later(
            max(0.0, due_at - time.monotonic()), self._ring
        )

    def _ring(self) -> None:
        self._alarm, self._rings_at = None, math.inf
        self.is_due = True
        self._wake()


def _key(settlement: Settlement) -> Key:
    return settlement.claim.id, settlement.claim.number
