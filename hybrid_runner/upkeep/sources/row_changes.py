"""Does for jobs what applications did to their rows: cancels them, or stores new ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from hybrid_runner.errors import DatabaseError, RowLocked, StatementAborted
from hybrid_runner.model.rows import AppliedChange
from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.session_settings import FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics import row_instruments
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.upkeep.constant_work import Step
from hybrid_runner.upkeep.sources.tables import Tables

log = logging.getLogger("hybrid_runner.upkeep")

PAUSE = 0.5
"""Seconds between two looks, if nobody rings."""
_AT_ONCE = 50
_CALLS = 20
"""Changes that one statement looks at, whose jobs it locks, and statements of a turn."""
_REPEAT_AFTER = 3600.0


class ApplyRowChanges(Step):
    """Walks through what triggers noted, again and again: what cannot be done yet does not hold up
    the rest.
    """

    name = "applying changes of rows"
    session = named("row changes", FOR_UPKEEP | {"statement_timeout": "5s"})

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._places: dict[int, int] = {}
        self._refused: dict[int, float] = {}
        self.applied = Counter(row_instruments.ROW_CHANGES)

    async def run(self, connection: Fetches) -> float:
        changed = await row_calls.changed_sources(connection)
        is_through = [await self._apply(connection, source) for source in changed]
        return PAUSE if all(is_through) else 0.0

    async def _apply(self, connection: Fetches, source: int) -> bool:
        """What there is of one table; False: there is more. One that cannot be done, or takes too
        long, does not hold up the others.
        """
        try:
            for _ in range(_CALLS):
                place = self._places.pop(source, 0)
                changes = await row_calls.apply_row_changes(connection, source, place, _AT_ONCE)
                self._count(source, changes)
                if len(changes) < _AT_ONCE:
                    return True
                self._places[source] = changes[-1].id
        except (DatabaseError, RowLocked, StatementAborted) as error:
            self._warn(source, str(error))
            return True
        return False

    def _count(self, source: int, changes: Sequence[AppliedChange]) -> None:
        name = self._tables.name(source)
        for change in changes:
            if change.did not in ("later", "nothing"):
                self.applied.add((name, change.did))
                log.info(
                    "%s: row %s: job %s, since the row was %s",
                    name,
                    change.row_key[:200],
                    change.did if change.did != "told" else "told to stop",
                    "deleted" if change.what == "gone" else change.what,
                    extra=log_event("rows.change_applied"),
                )
            if change.refused:
                self._warn(source, change.refused)

    def _warn(self, source: int, why: str) -> None:
        now = time.monotonic()
        if now - self._refused.get(source, -_REPEAT_AFTER) >= _REPEAT_AFTER:
            self._refused[source] = now
            log.warning(
                "%s: what happened to its rows cannot be told to their jobs yet: %s",
                self._tables.name(source),
                why,
                extra=log_event("rows.change_refused"),
            )
