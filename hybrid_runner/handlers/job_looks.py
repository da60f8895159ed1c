"""What the values of a job's memory ask of the job: see `waiting/look.py`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hybrid_runner.model.uses import Use

if TYPE_CHECKING:
    from hybrid_runner.handlers.notes import Notes


class JobLooks:
    """The part of `Job` that `Confirmations`, `Tries` and `Gate` use; the clock is `elapsed`."""

    __slots__ = ()

    _notes: Notes

    @property
    def chance(self) -> float:
        """A random number from 0 to 1."""
        return random.random()

    def count(self, value: object, use: Use) -> None:
        """Note that a value of the memory was used: metrics show it by the name of its field."""
        self._notes.count(value, use)
