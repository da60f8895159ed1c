"""Two settlers: what is written into rows of attached tables holds up no other outcome."""

from __future__ import annotations

import asyncio

from hybrid_runner.model.settlements import Settlement
from hybrid_runner.worker.settle.settler import Settler


class Settlers:
    """Outcomes of jobs about rows have a settler of their own: triggers of such a table may take
    their time.
    """

    def __init__(self, usual: Settler, of_rows: Settler) -> None:
        self.usual = usual
        self.of_rows = of_rows

    @property
    def pending(self) -> int:
        """How many settlements Postgres does not have yet."""
        return self.usual.pending + self.of_rows.pending

    @property
    def refused(self) -> int:
        """How many of them wait because Postgres refused them."""
        return self.usual.refused + self.of_rows.refused

    @property
    def stale(self) -> int:
        """How many came too late: their claims were no longer valid."""
        return self.usual.stale + self.of_rows.stale

    def refusal(self) -> str:
        """Which jobs' outcomes Postgres refuses, and why; empty if none. From any thread."""
        return "; ".join(filter(None, (self.usual.refusal(), self.of_rows.refusal())))

    def room(self) -> int:
        """How many more settlements are taken: more jobs than that should not be claimed."""
        return min(self.usual.room(), self.of_rows.room())

    def claims(self) -> list[tuple[int, int]]:
        """Job id and claim number of each settlement that Postgres does not have yet."""
        return [*self.usual.claims(), *self.of_rows.claims()]

    def settle(self, settlement: Settlement) -> None:
        """Write this soon; returns at once."""
        settler = self.usual if settlement.claim.source is None else self.of_rows
        settler.settle(settlement)

    async def drained(self) -> None:
        """Wait until Postgres has everything."""
        while True:
            await self.usual.drained()
            await self.of_rows.drained()
            if not self.pending:  # nothing came to the one while the other was waited for
                return
            await asyncio.sleep(0)

    async def drained_at_last(self) -> None:
        """Try what Postgres refuses once more, then wait until it has all that it does not
        refuse.
        """
        await self.usual.drained_at_last()
        await self.of_rows.drained_at_last()
