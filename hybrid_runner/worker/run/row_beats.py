"""Writes into rows of attached tables, from time to time, that their jobs still run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.storage import source_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.loops import Outage

_MOST = 200
"""Rows in one statement."""


class RowBeats:
    """`running` are the claims whose rows were shown to run."""

    def __init__(
        self,
        connection_of: Callable[[int], Fetches],
        running: Callable[[], Sequence[Claim]],
    ) -> None:
        self._connection_of = connection_of
        self._running = running
        self._outage = Outage("heartbeats of rows")
        self.beaten = 0
        """How many heartbeats were written."""

    async def beat(self) -> None:
        """Write one heartbeat of each; what Postgres refuses is left for the next time."""
        by_source: dict[int, list[tuple[int, int]]] = {}
        for claim in self._running():
            if claim.source is not None:
                by_source.setdefault(claim.source, []).append((claim.id, claim.number))
        for source, claims in by_source.items():
            for start in range(0, len(claims), _MOST):
                await self._beat(source, claims[start : start + _MOST])

    async def _beat(self, source: int, claims: Sequence[tuple[int, int]]) -> None:
        try:
            self.beaten += await source_calls.beat_rows(self._connection_of(source), claims)
        except RunnerError as error:
            self._outage.failed(error)
        else:
            self._outage.over()
