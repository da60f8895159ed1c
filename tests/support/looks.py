"""A waiting job whose clock and chance are moved by the test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hybrid_runner.model.uses import Use

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


class MovedLook:
    """The looks of one job; `at` moves its clock."""

    def __init__(self, chance: float = 0.5) -> None:
        self.began_at = BEGAN
        self.elapsed = timedelta(0)
        self.chance = chance
        self.uses: list[Use] = []

    def at(self, seconds: float) -> MovedLook:
        """The look so many seconds after the job's first start."""
        self.elapsed = timedelta(seconds=seconds)
        return self

    def count(self, value: object, use: Use) -> None:  # noqa: ARG002  # as `Job` has it
        """Note a use."""
        self.uses.append(use)
