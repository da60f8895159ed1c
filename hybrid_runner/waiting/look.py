"""One look of a waiting job, as these values see it. `Job` is one; a test makes its own and moves
its clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from hybrid_runner.model.uses import Use


class Look(Protocol):
    """What is asked of the job."""

    @property
    def began_at(self) -> datetime:
        """When the job was first claimed, by the database's clock."""

    @property
    def elapsed(self) -> timedelta:
        """The time since then, by the same clock."""

    @property
    def chance(self) -> float:
        """A random number from 0 to 1."""

    def count(self, value: object, use: Use) -> None:
        """Note that a value of the memory was used."""


def now_of(look: Look) -> datetime:
    """What time it is, by the database's clock."""
    return look.began_at + look.elapsed


def is_past(last: datetime, pause: timedelta, now: datetime) -> bool:
    """Whether the pause since `last` is over."""
    return now - last >= pause
