"""What became of this worker's jobs, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hybrid_runner.happenings import Search, Writing
from hybrid_runner.outcomes import Settlement, word_of


class Tally:
    """Counts by final state, and by why jobs were put back."""

    def __init__(self) -> None:
        self.settled: Counter[str] = Counter()

    def ended(self) -> int:
        """Jobs that have ended here, in whatever state."""
        return self.settled["completed"] + self.settled["failed"] + self.settled["cancelled"]

    def searched(self, search: Search) -> None:
        """What is found is the claimer's to count."""

    def rescued(self, settled: Sequence[Settlement]) -> None:
        """What is rescued is the rescuer's to count."""

    def wrote(self, writing: Writing) -> None:
        """Postgres has them."""
        self.settled.update(map(word_of, writing.settled))
