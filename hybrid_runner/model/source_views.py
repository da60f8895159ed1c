"""What is said of attached tables: what they are, what was made of them, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple


@dataclass(frozen=True)
class SourceView:
    """An attached table, as the database has it now."""

    id: int
    """The number that its triggers and functions carry in their names."""
    named_now: str | None
    """The table's name; None: it is gone."""
    attached_as: str
    """Its name when it was attached."""
    kind: str
    queue: str
    owner: str
    """Who owned it when it was attached."""
    queued: int
    running: int
    late: int
    """Rows that do not show yet what became of their jobs; counted up to 1,000."""
    oldest_late: datetime | None
    late_because: str | None
    """Why one of them is late."""
    attached_by: str
    attached_at: datetime
    detaching_at: datetime | None
    """Since when it is being detached, if it is."""
    is_reconciled: bool
    """Whether rows that were missed are looked for."""
    note: str | None
    triggers: tuple[str, ...]
    disabled: tuple[str, ...]
    """Those of its triggers that do not fire."""
    definition: Mapping[str, Any]
    """What was asked for when it was attached."""
    fault: str | None = None
    """Why it could not be attached again as it was; looked for by `app.source` alone."""
    checked_by: str | None = None
    """A role that can look for that, since the one that asks is a superuser."""

    @property
    def table(self) -> str:
        """Its name now; of a table that is gone as it was."""
        return self.named_now or self.attached_as

    @property
    def complaints(self) -> Sequence[str]:
        """What is wrong with it, a line each."""
        return [*self._complaints()]

    def _complaints(self) -> Iterator[str]:
        if self.detaching_at is not None:
            yield "it is being detached: detach it again once its last jobs have ended"
        if self.named_now is None:
            yield "the table is gone: detach it"
            return
        if self.named_now != self.attached_as:
            yield f"it was attached as {self.attached_as}: attach it again"
        if self.detaching_at is None and not self.triggers:
            yield "its triggers are gone: attach it again"
        if self.fault is not None:
            yield f"the table is no longer what it was, attach it again: {self.fault}"
        if self.checked_by is not None:
            yield f"a superuser does not check its words and SQL: look as {self.checked_by}"
        for name in self.disabled:
            yield f"trigger {name} is disabled: ALTER TABLE {self.named_now} ENABLE TRIGGER {name}"
        if self.late:
            yield f"late rows: {self.late} ({self.late_because})"


@dataclass(frozen=True)
class Attached:
    """What `attach` did, or would do."""

    id: int
    table: str
    kind: str
    queue: str
    is_kept: bool
    """False: it was only checked, and nothing has changed."""
    queued: int
    """Rows that were wanted already, and have a job now."""
    guessed: tuple[str, ...]
    """What was taken by its usual name, a line each."""
    notes: tuple[str, ...]
    """What is worth knowing, a line each."""
    sql: str | None
    """The script for psql, if one was asked for."""


@dataclass(frozen=True)
class Detached:
    """What `detach` did."""

    id: int
    table: str
    kind: str
    cancelled: int
    """Queued jobs that were ended; their rows have the queued word."""
    notes: tuple[str, ...]
    """What is worth knowing, a line each."""


class SourceRecord(NamedTuple):
    """What is written down of an attached table: the parameters of
    sql/queries/record_source.sql.
    """

    number: int
    relation: str
    """Its name with its schema, quoted."""
    kind: str
    queue: str
    owner: str
    definition: str
    """JSON."""
    is_reconciled: bool
    note: str | None


class LeftOfSource(NamedTuple):
    """What keeps a source from being detached, as sql/queries/left_of_source.sql returns it."""

    jobs: int
    job_id: int | None
    worker_id: str | None
    late: int
    """Rows that a worker is to write."""
    has_worker: bool
    refused: int
    why: str | None
