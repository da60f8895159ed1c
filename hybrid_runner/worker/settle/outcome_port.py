"""The settler's statements, bound to one database."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from hybrid_runner.errors import StatementAborted
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.storage import claim_calls, signal_calls
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.tracing import Tracing

log = logging.getLogger("hybrid_runner.worker")

S = TypeVar("S", bound=Settlement)

_NONE: Mapping[str, str] = MappingProxyType({})
_TOO_SLOW = "57014"
_SLOW_FOR = 60.0
"""Seconds for which a table that was too slow is not waited for."""


class Outcomes:
    """The `OutcomePort` of a real database; see there what each method returns."""

    def __init__(
        self, connection: LazyConnection, tracing: Tracing, on_ends: Mapping[str, str] = _NONE
    ) -> None:
        """`on_ends` are what the kinds here say under `on_end`, by their names."""
        self._connection = connection
        self._tracing = tracing
        self._on_ends = on_ends

    async def finish(self, batch: Sequence[Finished], *, put_off: bool = False) -> set[int]:
        traceparents = self._traceparents_after(batch)
        return await claim_calls.finish_jobs(
            self._connection, batch, traceparents, self._on_ends, put_off=put_off
        )

    async def requeue(self, batch: Sequence[Requeued], *, put_off: bool = False) -> set[int]:
        return await claim_calls.requeue_jobs(
            self._connection, batch, self._tracing.traceparents_of(batch), put_off=put_off
        )

    async def repeat(self, batch: Sequence[Repeated], *, put_off: bool = False) -> set[int]:
        return await claim_calls.repeat_jobs(
            self._connection,
            batch,
            self._traceparents_after(batch),
            self._tracing.traceparents_of_next_runs(batch),
            put_off=put_off,
        )

    async def wake_waiting(self, ids: Sequence[int]) -> None:
        await signal_calls.wake_waiting(self._connection, ids)

    async def archived_before(self, batch: Sequence[Finished]) -> set[int]:
        return await claim_calls.archived_before(self._connection, batch)

    async def locked(self, ids: Sequence[int]) -> set[int]:
        return await claim_calls.find_locked(self._connection, ids)

    async def reasons(self, ids: Sequence[int]) -> Mapping[int, str]:
        return await claim_calls.find_reasons(self._connection, ids)

    def _traceparents_after(
        self, batch: Sequence[Finished] | Sequence[Repeated]
    ) -> list[str | None] | None:
        """The traces of what follows these, if anything does."""
        if self._tracing.on and any(s.follow_ups or s.claim.kind in self._on_ends for s in batch):
            return self._tracing.traceparents_after(batch)
        return None


class RowOutcomes(Outcomes):
    """Of jobs about rows of attached tables. Where a table takes too long, its rows are written
    later: for a minute it is not asked.
    """

    def __init__(
        self, connection: LazyConnection, tracing: Tracing, on_ends: Mapping[str, str] = _NONE
    ) -> None:
        super().__init__(connection, tracing, on_ends)
        self._slow_until: dict[int, float] = {}

    async def finish(self, batch: Sequence[Finished], *, put_off: bool = False) -> set[int]:
        return await self._by_table(batch, super().finish, put_off=put_off)

    async def requeue(self, batch: Sequence[Requeued], *, put_off: bool = False) -> set[int]:
        return await self._by_table(batch, super().requeue, put_off=put_off)

    async def repeat(self, batch: Sequence[Repeated], *, put_off: bool = False) -> set[int]:
        return await self._by_table(batch, super().repeat, put_off=put_off)

    async def _by_table(
        self, batch: Sequence[S], write: Callable[..., Awaitable[set[int]]], *, put_off: bool
    ) -> set[int]:
        """One statement for the tables that answer, and one for those that were too slow."""
        now = time.monotonic()
        slow = {s for s, until in self._slow_until.items() if until > now}
        tried = [s for s in batch if s.claim.source not in slow]
        left = [s for s in batch if s.claim.source in slow]
        moved: set[int] = set()
        if tried:
            try:
                moved |= await write(tried, put_off=put_off)
            except StatementAborted as error:
                if error.sqlstate != _TOO_SLOW:
                    raise
                sources = sorted({s.claim.source for s in tried if s.claim.source is not None})
                self._slow_until |= dict.fromkeys(sources, time.monotonic() + _SLOW_FOR)
                log.warning(
                    "rows of source %s are written later, since they take too long: %s",
                    ", ".join(map(str, sources)),
                    error,
                    extra=log_event("rows.put_off"),
                )
                moved |= await write(tried, put_off=True)
        if left:
            moved |= await write(left, put_off=True)
        return moved
