"""What Postgres knows of a table that somebody wants to attach, as sql/queries/describe_*.sql
return it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class SchemaRights(NamedTuple):
    """Whether somebody may use the schema hybrid_runner at all."""

    is_reached: bool
    role: str
    owner: str


class FoundTable(NamedTuple):
    """A relation that a name may mean."""

    oid: int
    schema: str
    name: str
    full_name: str
    """With its schema, quoted where it has to be."""
    is_temporary: bool


class TableHead(NamedTuple):
    """The table itself, who owns it, and what whoever asks may do with it."""

    oid: int
    schema: str
    name: str
    full_name: str
    kind: str
    """A letter of pg_class.relkind."""
    persistence: str
    is_partition: bool
    is_parent: bool
    """Other tables inherit from it; partitions do not count."""
    is_child: bool
    """It inherits from another table, or is a partition."""
    rows: float
    """As many as Postgres estimates; -1: it does not know."""
    has_rules: bool
    """Postgres rewrites what is written to it (CREATE RULE)."""
    owner: str
    owner_is_superuser: bool
    owner_is_trusted: bool
    """A superuser, or the role that owns hybrid_runner."""
    may_act_as_owner: bool
    owner_reaches_it: bool
    """The owner may use the table's schema."""
    runner_owner: str
    may_act_as_runner_owner: bool
    role: str
    """Who asks."""
    outranked_by_asker: str | None
    """A role that owns the table, its schema or a partition, and cannot become a superuser that the
    session can become.
    """
    outranked_by_runner: str | None
    """The same, beside the owner of hybrid_runner."""
    search_path: str | None
    """What is set for the owner, or for the database."""
    owner_sees_all: bool
    """Row-level security hides no row from the table's owner."""


class TableColumn(NamedTuple):
    """One column; `base`, `category` and `length` are those of the type below its domains."""

    name: str
    quoted: str
    type: str
    """As it is written in SQL, with its schema and length."""
    base: str
    category: str
    """A letter of pg_type.typcategory: S for texts, E for enums, N for numbers …"""
    length: int | None
    """Characters that fit; None: any number."""
    is_not_null: bool
    is_generated: bool
    """Postgres computes it: nobody else can write it."""
    is_virtual: bool
    """It is not stored: computed when it is read."""
    default: str | None
    labels: tuple[str, ...]
    """Of an enum, in their order."""
    below: str
    """The type below its domains, as it is written in SQL."""


class TableIndex(NamedTuple):
    """One valid index."""

    name: str
    columns: tuple[str | None, ...]
    """None stands for an expression."""
    is_unique: bool
    names_rows: bool
    """Unique for all rows, at once, and over plain columns."""
    is_primary: bool
    predicate: str | None


class TableCheck(NamedTuple):
    """One CHECK constraint that is enforced."""

    name: str
    columns: tuple[str, ...]
    expression: str


class TableTrigger(NamedTuple):
    """One trigger that an UPDATE may fire and that is not ours."""

    name: str
    columns: tuple[str, ...]
    """Those that fire it; empty: all."""
    is_deferred: bool = False
    """It fires when whoever wrote commits."""


class TableReference(NamedTuple):
    """One foreign key of one column."""

    column: str
    to_table: str
    to_column: str
    """Both as SQL writes them."""
    shows_all: bool
    """No policy decides who sees which rows of that table."""


class OtherSource(NamedTuple):
    """What else the rows of a table are worked on for."""

    kind: str
    status: str | None
    queued: str | None


@dataclass(frozen=True, slots=True)
class Table:
    """All that has to be known of a table before it is attached."""

    head: TableHead
    columns: tuple[TableColumn, ...]
    indexes: tuple[TableIndex, ...]
    checks: tuple[TableCheck, ...]
    triggers: tuple[TableTrigger, ...]
    references: tuple[TableReference, ...]

    def column(self, name: str) -> TableColumn | None:
        """The column of that name."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The names of its columns; empty: the table has none."""
        return next((plain(index) for index in self.indexes if index.is_primary), ())


def plain(index: TableIndex) -> tuple[str, ...]:
    """The names of an index's columns; empty if one of them is an expression."""
    names = tuple(name for name in index.columns if name is not None)
    return names if len(names) == len(index.columns) else ()


class ReadExpression(NamedTuple):
    """What Postgres made of an expression over a table's columns."""

    text: str
    """Fully qualified; columns have `alias` and a dot before them."""
    alias: str
    type: str
    """Of its value, as pg_type.typname."""
    columns: tuple[str, ...]
    """Those it reads."""
    forbidden: str | None
    """What it has that no expression here may have, in words."""
    changing: tuple[str, ...]
    """Functions whose answer may change without a change of the row."""
    by_session: tuple[str, ...]
    """Types to which it casts as the session is set, by its time zone for one."""
    withheld: tuple[str, ...]
    """Functions, with the types of their arguments, that not everybody may call."""

    def of(self, row: str) -> str:
        """Its text for a row that has another name: `new`, `old`, `t`."""
        return self.text.replace(f"{self.alias}.", f"{row}.")


class Unreadable(NamedTuple):
    """Why Postgres refused an expression or a word."""

    reason: str
    sqlstate: str = ""
