"""The metrics about rows of attached tables; part of the table in instruments.py."""

from __future__ import annotations

from typing import Final

from hybrid_runner.telemetry.metrics.instrument import Instrument, Merge, counter, gauge

ROWS_SHOWN = counter(
    "rows_shown",
    "{row}",
    ("table", "outcome"),
    "Rows that were to show that their jobs run, by what came of it: written; locked (a"
    " session holds it, or it is left to another worker), refused by Postgres or undone by a"
    " trigger, which are written later; unwanted or gone, so that the job was cancelled.",
    "D3",
)
ROW_CHANGES = counter(
    "row_changes",
    "{row}",
    ("table", "outcome"),
    "What rows meant for their jobs that were cancelled, deleted, or wanted anew: cancelled, told"
    " (to the worker that runs it) or stored.",
    "D1",
)
LATE_ROWS_WRITTEN = counter(
    "late_rows_written",
    "{row}",
    ("table", "outcome"),
    "Tries to write rows that could not be written when something became of their jobs: written,"
    " kept (the application has decided otherwise), again (it was wanted anew), gone, locked"
    " (somebody holds it still), refused by Postgres, or undone by a trigger of the table.",
    "D3",
)
ROW_REPAIRS = counter(
    "row_repairs",
    "{row}",
    ("table", "what"),
    "Rows and jobs that did not agree: a job was stored for a wanted row without one, a row that"
    " showed running without a job is wanted_again, or a job without a row was cancelled.",
    "D1",
)

LATE_ROWS = gauge(
    "late_rows",
    "{row}",
    ("table", "kind"),
    "Rows of attached tables that do not show yet what became of their jobs: a session holds them,"
    " Postgres refuses the write, a trigger undoes it, or they are left to a worker.",
    "D3",
    Merge.HIGHEST,
)
LATE_ROWS_OLDEST = gauge(
    "late_rows_oldest_seconds",
    "s",
    ("table", "kind"),
    "For how long the one of them has been late that has been so for longest; 0 if there is none.",
    "D3",
    Merge.HIGHEST,
)
REFUSED_ROWS = gauge(
    "refused_rows",
    "{row}",
    ("table", "kind"),
    "Those of them that Postgres refuses.",
    "D3",
    Merge.HIGHEST,
)

INSTRUMENTS: Final = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Instrument)
)
