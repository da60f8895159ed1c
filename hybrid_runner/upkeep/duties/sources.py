"""Looks after rows of attached tables, in one worker for the whole fleet."""

from __future__ import annotations

import time
from datetime import timedelta

from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.metrics import row_instruments
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.sources.late_rows import WriteLateRows
from hybrid_runner.upkeep.sources.row_changes import ApplyRowChanges
from hybrid_runner.upkeep.sources.row_check import MOST_SCANNED, CheckRows
from hybrid_runner.upkeep.sources.tables import Tables

ROW_CHECK = timedelta(minutes=1)


class Sources(Duty):
    """Its row in the table of duties is there while tables are attached. Its own turn reads how
    they stand; its steps do the rest.
    """

    name = "sources"
    every = timedelta(seconds=15)
    held = True

    def __init__(self, row_check: timedelta = ROW_CHECK) -> None:
        self._tables = Tables()
        self.late_rows = WriteLateRows(self._tables)
        self.row_changes = ApplyRowChanges(self._tables)
        self.row_check = CheckRows(self._tables, row_check)
        self.steps = (self.late_rows, self.row_changes, self.row_check)

    @property
    def complaints(self) -> tuple[str, ...]:
        """What somebody should look at; nothing while another worker holds the duty. May be called
        from any thread.
        """
        if time.monotonic() >= self.held_until:
            return ()
        failing = (
            f"rows of {self._tables.name(source)} cannot be compared with their jobs: {why}"
            for source, why in self.row_check.failing.copy().items()
        )
        too_dear = (
            f"rows of {self._tables.name(source)} that were missed are not looked for, since it has"
            f" more than {MOST_SCANNED:,} and no index of those that are wanted or run: attach it"
            " again with --check, which names one"
            for source in self.row_check.too_dear.copy()
        )
        return (*self._tables.complaints, *failing, *too_dear)

    def metric_values(self) -> MetricValues:
        """What this worker counted, and how the tables stand if it holds the duty. May be called
        from any thread.
        """
        counted = {
            counter.instrument.name: counter.read()
            for counter in (
                self.late_rows.written,
                self.row_changes.applied,
                self.row_check.repairs,
            )
            if counter.read()
        }
        known = self._tables.known if time.monotonic() < self.held_until else ()
        if not known:
            return {**counted}
        return {
            **counted,
            row_instruments.LATE_ROWS.name: {(one.table, one.kind): one.late for one in known},
            row_instruments.LATE_ROWS_OLDEST.name: {
                (one.table, one.kind): one.oldest for one in known
            },
            row_instruments.REFUSED_ROWS.name: {
                (one.table, one.kind): one.refused for one in known
            },
        }

    def end_hold(self) -> None:
        """Forget how they stand: when the duty is held again that would be old."""
        super().end_hold()
        self._tables.known = ()

    async def run(self, connection: Fetches) -> None:
        self._tables.known = await row_calls.source_states(connection)
