"""Tables of applications as sources of work: what somebody asks for, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

WriteOutcome: TypeAlias = Literal[
    "written",
    "kept",
    "again",
    "unwanted",
    "gone",
    "locked",
    "refused",
    "undone",
    "detached",
    "held",
    "cancelled",
]


LARGEST_ROW = 1024 * 1024
"""Bytes of a row as JSON, at most, that a handler can be given."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the status column says, for each thing that can become of a job."""

    running: str
    completed: str
    failed: str
    queued: str | None = None
    """None: taken from the condition, where that says `column = 'word'`."""
    cancelled: str | None = None
    """None: the word for failed."""
    snoozed: str | None = None
    """While it waits by its own choice. None: the word for running."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of the table show what; None: none does."""

    status: str
    worker_id: str | None = None
    started_at: str | None = None
    heartbeat_at: str | None = None
    retry_count: str | None = None
    """How many attempts ended badly."""
    finished_at: str | None = None
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class SourceDefinition:
    """What somebody asks for who attaches a table."""

    table: str
    """Its name, with or without its schema, as SQL would have it."""
    kind: str
    when: str
    """SQL over the table's columns: which rows are wanted."""
    words: Words
    columns: Columns
    key: tuple[str, ...] | None = None
    """Columns that together name a row; None: the primary key."""
    payload: tuple[str, ...] | None = None
    """Columns that the handler is given; None: all but those of type bytea."""
    queue: str | None = None
    """None: the queue of the kind's handler."""
    priority: str | None = None
    """SQL over the table's columns, 0 (first) to 9."""
    run_at: str | None = None
    """SQL over the table's columns: not before."""
    cancel_when: str | None = None
    """SQL over the table's columns: rows whose jobs are to be cancelled."""
    on_delete: Literal["cancel", "ignore"] = "cancel"
    backfill: Literal["all", "none"] = "all"
    """Whether rows that are wanted already are worked on."""
    scan: bool = False
    """Rows may be looked for without an index, however large the table is."""
    trust_owner: bool = False
    """The table's owner may run code inside the workers' statements."""


class ColumnType(NamedTuple):
    """A column of the table."""

    name: str
    type: str
    """As SQL has it in a cast, with its schema unless that is pg_catalog: `text`, `varchar(36)`."""
    base: str
    """Of domains the type below; no length: `varchar`, `timestamptz`, `uuid`, `int8`, `enum`."""
    is_not_null: bool = False


class Expression(NamedTuple):
    """One expression over a row, as Postgres printed it with all names qualified."""

    new: str
    """With the columns of the alias `new`."""
    old: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table that can be attached: all was checked, nothing is left to be found out."""

    number: int
    schema: str
    table: str
    owner: str
    kind: str
    queue: str
    runner_owner: str
    """The role that owns the schema hybrid_runner."""
    key: tuple[ColumnType, ...]
    condition: Expression
    """Which rows are wanted, with `status = queued word` in it."""
    words: Words
    """All of them are given."""
    status: ColumnType
    columns: dict[str, ColumnType] = field(default_factory=dict)
    """By the names of the fields of `Columns`, but status; only those that are given."""
    cancel: Expression | None = None
    priority: Expression | None = None
    run_at: Expression | None = None
    payload: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    """Columns of type bytea, which the handler is not given, if `payload` names none."""
    on_delete: Literal["cancel", "ignore"] = "cancel"
    by_row: bool = False
    """Triggers for each row: the table is partitioned or inherited."""
    owner_is_superuser: bool = False
    """Triggers run with a superuser's rights: only while the table stays with such a role."""
    search_path: str | None = None
    """Where the table's own triggers find what they name without a schema: what is set for its
    owner or the database. None: nothing is.
    """
    definition: SourceDefinition


class ShownRow(NamedTuple):
    """What the row of a claimed job says, as it begins."""

    job_id: int
    outcome: WriteOutcome
    word: str | None
    table: str
    payload: str | None = None
    """The row, as JSON text; None: there was no room for it in the answer, or it is too large."""
    size: int | None = None
    """Bytes of that text; None: it was not read."""

    @property
    def is_late(self) -> bool:
        """Whether what became of its job is written into it later."""
        return self.outcome in ("locked", "refused", "undone")
