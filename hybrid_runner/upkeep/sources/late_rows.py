"""Writes the rows that could not be written when something became of their jobs."""

from __future__ import annotations

import logging
import time
from collections import Counter as Count
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from hybrid_runner.errors import DatabaseError, RowLocked, RunnerError, StatementAborted
from hybrid_runner.model.rows import LateRow
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
_AT_ONCE = 500
_LONGEST = 1.0
"""Seconds that a turn of one table may take: what is left then has its turn with the next one."""
_SLOW = 10.0
"""Seconds from which it is said who holds a row."""
ASK_EVERY = 10.0
_MOST_NAMED = 20
_FORGOTTEN_AFTER = 60.0
"""Seconds after which a session that held no row meanwhile is named again."""
_REPEAT_AFTER = 3600.0


class WriteLateRows(Step):
    """Rows that somebody holds are tried twice a second, those that Postgres refuses alone at
    growing pauses.
    """

    name = "writing late rows"
    session = named("late rows", FOR_UPKEEP | {"statement_timeout": "5s"})

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._ask_at = 0.0
        self._said_at: dict[int, float] = {}
        self._undone_at: dict[int, float] = {}
        self._named: dict[tuple[int, int], float] = {}
        """Sessions that the log has, and when each was last seen to hold rows."""
        self._at_once: dict[int, int] = {}
        """How many rows of a slow table are written by one statement."""
        self.written = Counter(row_instruments.LATE_ROWS_WRITTEN)

    async def run(self, connection: Fetches) -> float:
        began = time.monotonic()
        rows = await row_calls.find_late_rows(connection, _AT_ONCE)
        if not rows:
            return PAUSE
        together, alone = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
        for row in rows:
            (alone if row.is_refused else together)[row.source].append(row.row_key)
        for source, keys in together.items():
            most = self._at_once.get(source, _AT_ONCE)
            parts = [keys[at : at + most] for at in range(0, len(keys), most)]
            await self._try(connection, source, parts)
        for source, keys in alone.items():
            await self._try(connection, source, [[key] for key in keys])
        await self._name_holders(connection, rows)
        took = time.monotonic() - began
        return took if len(rows) >= _AT_ONCE else max(PAUSE, took)

    async def _try(self, connection: Fetches, source: int, parts: Iterable[Sequence[str]]) -> None:
        """A table on which that fails, or takes too long, does not hold up the others."""
        until = time.monotonic() + _LONGEST
        try:
            for keys in parts:
                await self._write(connection, source, keys, until)
            self._at_once[source] = min(_AT_ONCE, 2 * self._at_once.get(source, _AT_ONCE))
        except (DatabaseError, RowLocked, StatementAborted) as error:
            if isinstance(error, StatementAborted):
                self._at_once[source] = max(1, self._at_once.get(source, _AT_ONCE) // 4)
            now = time.monotonic()
            if now >= self._said_at.get(source, -_REPEAT_AFTER) + _REPEAT_AFTER:
                self._said_at[source] = now
                log.warning(
                    "%s: its late rows cannot be written: %s; trying again",
                    self._tables.name(source),
                    error,
                    extra=log_event("rows.late_failed"),
                )

    async def _write(
        self, connection: Fetches, source: int, keys: Sequence[str], until: float
    ) -> None:
        """In halves, as long as Postgres refuses them together."""
        if time.monotonic() >= until:
            return
        outcomes = await row_calls.write_late_rows(connection, source, keys)
        self._say_undone(source, [key for key in keys if outcomes.get(key) == "undone"])
        if len(keys) > 1 and "refused" in outcomes.values():
            half = len(keys) // 2
            await self._write(connection, source, keys[:half], until)
            await self._write(connection, source, keys[half:], until)
            return
        for outcome, count in Count(outcomes.values()).items():
            self.written.add((self._tables.name(source), outcome), count)

    def _say_undone(self, source: int, keys: Sequence[str]) -> None:
        now = time.monotonic()
        if keys and now >= self._undone_at.get(source, -_REPEAT_AFTER) + _REPEAT_AFTER:
            self._undone_at[source] = now
            log.warning(
                "%s: row %s cannot show what became of its job, since a trigger of the table keeps"
                " its status: it stays late until the trigger lets it be written",
                self._tables.name(source),
                keys[0][:200],
                extra=log_event("rows.undone"),
            )

    async def _name_holders(self, connection: Fetches, rows: Sequence[LateRow]) -> None:
        """Say once of each session that it holds rows for long."""
        slow = defaultdict[int, list[str]](list)
        for row in rows:
            if row.seconds >= _SLOW and not row.is_refused and len(slow[row.source]) < _MOST_NAMED:
                slow[row.source].append(row.row_key)
        if not any(slow.values()) or time.monotonic() < self._ask_at:
            return
        now = time.monotonic()
        self._ask_at = now + ASK_EVERY
        named = {who: at for who, at in self._named.items() if now - at < _FORGOTTEN_AFTER}
        self._named = named
        for source, keys in slow.items():
            with suppress(RunnerError):
                holders = await row_calls.find_row_holders(connection, source, keys)
                for holder in holders:
                    is_new = (source, holder.session.pid) not in named
                    named[source, holder.session.pid] = now
                    if is_new:
                        log.warning(
                            "%s: row %s cannot show what became of its job, since %s holds it: %s",
                            self._tables.name(source),
                            holder.row_key[:200],
                            holder.session,
                            holder.session.remedy,
                            extra=log_event("rows.held", pid=holder.session.pid),
                        )
