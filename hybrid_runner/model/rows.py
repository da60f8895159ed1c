"""What those read who look after rows of attached tables."""

from __future__ import annotations

from typing import NamedTuple

from hybrid_runner.model.upkeep import Blocker


class LateRow(NamedTuple):
    """A row that does not show yet what became of its job."""

    source: int
    row_key: str
    is_refused: bool
    """Postgres refused it alone."""
    seconds: float
    """For how long it has been late."""


class RowHolder(NamedTuple):
    """Who holds a row."""

    row_key: str
    session: Blocker


class AppliedChange(NamedTuple):
    """What was done for a job, because of what an application did to its row."""

    id: int
    row_key: str
    what: str
    did: str
    """cancelled, told, stored, nothing or later: see sql/functions/apply_to_jobs.sql."""
    refused: str | None
    """What Postgres said, if it refused."""


class StrayRow(NamedTuple):
    """A row that shows running while no job of its does."""

    row_key: str
    seconds: float | None
    """How long ago its last heartbeat was, or its start; None: the table does not say."""


class RowPlans(NamedTuple):
    """How rows of a table that were missed would be found."""

    rows: float
    is_scan: bool
    """By reading the whole table."""
    may_scan: bool
    """Whoever attached it allows that, however large it is."""


class SourceState(NamedTuple):
    """An attached table, and what is left to do for its rows: see sql/queries/source_states.sql."""

    id: int
    table: str
    kind: str
    is_reconciled: bool
    note: str | None
    is_detaching: bool
    is_there: bool
    late: int
    refused: int
    """How many of these Postgres refuses alone."""
    oldest: float
    """For how many seconds the one that has been late for longest has been so."""
    why: str | None
    """Why one of them is late."""
    age: float
    """How many seconds ago it was attached."""
