"""Compares rows of attached tables with their jobs, and mends what triggers and workers missed."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.rows import SourceState, StrayRow
from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.session_settings import FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics import row_instruments
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.upkeep.constant_work import Step
from hybrid_runner.upkeep.sources.tables import Tables

log = logging.getLogger("hybrid_runner.upkeep")

_MOST = 1000
"""Rows of each sort that a turn mends."""
_STALLED = 300.0
"""Seconds without a sign of life after which a row that shows running is nobody's."""
MOST_SCANNED = 100_000
"""Rows of a table up to which it may be read as a whole."""
_NEW_UNTIL = 120.0
"""Seconds after it was attached in which whoever did so stores jobs for the rows that are there."""
_REST = 20
"""A table has its next turn after this many times what its last one took, at least."""


class CheckRows(Step):
    """Wanted rows without a job get one, rows that show running without a job are wanted again, and
    jobs whose row is gone are cancelled.
    """

    name = "comparing rows with their jobs"
    # However large a table is, and whatever index it has: this long and no longer.
    session = named("row check", FOR_UPKEEP | {"statement_timeout": "30s"})
    is_rung = False

    def __init__(self, tables: Tables, every: timedelta) -> None:
        self._tables = tables
        self._every = every.total_seconds()
        self._next: dict[int, float] = {}
        self._strays: dict[int, set[str]] = {}
        self._places: dict[int, str] = {}
        self.failing: dict[int, str] = {}
        """Why the last turn of a table failed, by source."""
        self.too_dear: set[int] = set()
        """Tables that are too large to be read without an index."""
        self.repairs = Counter(row_instruments.ROW_REPAIRS)

    async def run(self, connection: Fetches) -> float:
        states = await row_calls.source_states(connection)
        self._forget_all_but({one.id for one in states})
        for one in states:
            began = time.monotonic()
            if one.is_detaching or not one.is_there or began < self._next.get(one.id, 0.0):
                continue
            try:
                await self.check(connection, one)
                self.failing.pop(one.id, None)
            except RunnerError as error:
                self._failed(one, error)
            took = time.monotonic() - began
            self._next[one.id] = began + max(self._every - 1, _REST * took)
        return self._every

    async def check(self, connection: Fetches, one: SourceState) -> None:
        """One turn of one table."""
        if await self._is_dear(connection, one.id):
            self.too_dear.add(one.id)
        else:
            self.too_dear.discard(one.id)
            await self._compare_rows(connection, one)
        place = self._places.get(one.id, "")
        last, cancelled = await row_calls.cancel_jobs_without_rows(connection, one.id, place, _MOST)
        self._places[one.id] = last or ""
        self._report(one, "cancelled", cancelled, "jobs had no row any more: cancelled")

    async def _is_dear(self, connection: Fetches, source: int) -> bool:
        plans = await row_calls.row_plans(connection, source)
        return plans.is_scan and plans.rows > MOST_SCANNED and not plans.may_scan

    async def _compare_rows(self, connection: Fetches, one: SourceState) -> None:
        if one.is_reconciled and one.age >= _NEW_UNTIL:
            stored = await row_calls.want_rows(connection, one.id, _MOST)
            self._report(one, "stored", stored, "wanted rows had no job: stored")
        strays = await row_calls.find_stray_rows(connection, one.id, _MOST)
        if lost := self._lost(one.id, strays):
            outcomes = await row_calls.write_late_rows(connection, one.id, lost)
            written = sum(outcome == "written" for outcome in outcomes.values())
            self._report(one, "wanted_again", written, "rows showed running without a job")

    def _forget_all_but(self, attached: set[int]) -> None:
        self.too_dear &= attached
        by_source: tuple[dict[int, Any], ...] = (
            self.failing,
            self._next,
            self._strays,
            self._places,
        )
        for known in by_source:
            for source in known.keys() - attached:
                del known[source]

    def _lost(self, source: int, strays: list[StrayRow]) -> list[str]:
        """Those that nobody works on: the table says so, or two turns in a row have seen them."""
        before = self._strays.get(source, set())
        self._strays[source] = {row.row_key for row in strays}
        return [
            row.row_key
            for row in strays
            if (row.row_key in before if row.seconds is None else row.seconds >= _STALLED)
        ]

    def _report(self, one: SourceState, what: str, count: int, says: str) -> None:
        self.repairs.add((one.table, what), count)
        if count:
            log.warning(
                "%s: %d %s", one.table, count, says, extra=log_event("rows.repaired", rows=count)
            )

    def _failed(self, one: SourceState, error: RunnerError) -> None:
        if one.id not in self.failing:
            log.warning(
                "%s: its rows cannot be compared with their jobs: %s; trying again",
                one.table,
                error,
                extra=log_event("rows.check_failed"),
            )
        self.failing[one.id] = str(error)
