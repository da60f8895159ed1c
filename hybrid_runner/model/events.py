"""What happens in a worker, as values: a look was made, a batch of outcomes was settled, jobs of a
dead worker were rescued. Whoever counts, logs or traces that is an observer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.settlements import Finished, Settlement


class LookMade(NamedTuple):
    """One look that Postgres answered; most find nothing."""

    queue: str
    way: str
    """What caused it: ring, look, timer, sweep and others."""
    asked: int
    """How many slots were free."""
    claims: Sequence[Claim]
    swept: bool
    """Whether it read the lanes from their start."""
    began: float
    """By the monotonic clock, as `ended` and `asleep_since`."""
    ended: float
    asleep_since: float | None = None
    """When the queue's claimer fell asleep; None: it was not asleep."""


class BatchSettled(NamedTuple):
    """One batch of outcomes that Postgres has. The times are those of its statement."""

    settled: Sequence[Settlement]
    stale: Sequence[Finished]
    """Outcomes whose claims were no longer valid: nothing was written for them."""
    began: float
    ended: float


class Observer:
    """Ignores everything: an observer overrides what it wants to know.

    `on_rescued` is called in the heartbeat's thread, the others in the worker's event loop.
    """

    def on_look(self, look: LookMade) -> None:
        """Postgres has answered a look."""

    def on_settled(self, batch: BatchSettled) -> None:
        """Postgres has these outcomes."""

    def on_rescued(self, settled: Sequence[Settlement]) -> None:
        """Jobs of dead workers were put back or ended."""
