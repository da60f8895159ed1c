"""Which jobs are inserted, and how jobs of each kind should end. Chance comes as an argument."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

QUEUES = ("default", "other")
_WEIGHTS = {
    "noop": 36,
    "nap": 20,
    "long_nap": 12,
    "flaky": 8,
    "doomed": 1,
    "refuse": 1,
    "quit": 1,
    "snooze": 6,
    "block": 1,
    "thread": 8,
    "gather": 24,
    "start": 4,
}
ENDS = {
    "noop": "completed",
    "nap": "completed",
    "long_nap": "completed",
    "flaky": "completed",
    "doomed": "failed",
    "refuse": "failed",
    "quit": "cancelled",
    "snooze": "completed",
    "block": "completed",
    "thread": "completed",
    "gather": "completed",
    "start": "completed",
}
"""How a job of each kind ends when nobody cancels it and its workers do not die too often."""
FOLLOWING = ("child", "clean_up")
"""Kinds of the jobs that are stored by the end of others; nobody orders them."""
HOOKED = ("nap", "doomed", "refuse", "quit")
"""Kinds whose ends are followed by a `clean_up`, however they come."""
RAISES = ("flaky", "doomed")
_SECONDS = {
    "nap": 0.5,
    "long_nap": 5.0,
    "block": 0.25,
    "thread": 0.2,
    "flaky": 5.0,
    "snooze": 5.0,
    "gather": 2.0,
    "start": 0.5,
}
_KEYS = 12


@dataclass(frozen=True, slots=True)
class Order:
    """One job to insert."""

    n: int
    kind: str
    queue: str
    priority: int
    delay: float
    key: str | None
    payload: dict[str, Any]
    cancel_after: float | None
    """Seconds after which a client cancels it; None: nobody does."""


def order(n: int, chance: random.Random) -> Order:
    """Any job."""
    [kind] = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    seconds = _SECONDS.get(kind, 0) * (
        chance.random() if kind == "long_nap" else chance.random() ** 3
    )  # most are short
    return Order(
        n=n,
        kind=kind,
        queue=chance.choice(QUEUES),
        priority=chance.choice([5, 5, 5, 5, *range(10)]),
        delay=chance.uniform(0, 3) if chance.random() < 0.15 else 0.0,
        key=f"key-{chance.randrange(_KEYS)}" if chance.random() < 0.05 else None,
        payload={"n": n, "seconds": round(seconds, 3), "times": chance.choice([1, 1, 2, 3])},
        cancel_after=chance.uniform(0, 1) if chance.random() < 0.03 else None,
    )


def key_of_signal(n: int, place: int) -> str:
    """What a job waits for that gathers signals: for each another key, or the same key for all."""
    return f"go-{n}-{place}" if n % 2 else f"go-{n}"
