"""The columns of a table that name a row and show what becomes of its job."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import fields

from hybrid_runner.attach.expressions import listed
from hybrid_runner.attach.identifiers import readable
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Columns, ColumnType
from hybrid_runner.model.tables import Table, TableColumn, plain

_TEXTS = "a text"
_TIMES = "a timestamptz"
_NUMBERS = "an integer"
_INTEGERS = ("int2", "int4", "int8", "numeric")
_ZONED = ("timestamptz", "timestamp")
_JSON = ("json", "jsonb")

_KINDS = {
    "worker_id": _TEXTS,
    "started_at": _TIMES,
    "heartbeat_at": _TIMES,
    "retry_count": _NUMBERS,
    "finished_at": _TIMES,
    "result": "a jsonb, a json or a text",
    "error": "a text, a jsonb or a json",
}


def option_of(field: str) -> str:
    """The option of `attach` that names a column."""
    return "--" + field.replace("_", "-")


def find_column(table: Table, option: str, name: str) -> TableColumn:
    """The column of that name; ConfigurationError if there is none."""
    found = table.column(name)
    if found is None:
        near = difflib.get_close_matches(name, [column.name for column in table.columns], n=1)
        advice = f"did you mean {readable(near[0])}?" if near else f"it has {listed(table)}"
        raise ConfigurationError(
            f"{table.head.full_name} has no column {readable(name)} ({option}): {advice}"
        )
    return found


def find_status(table: Table, name: str) -> ColumnType:
    """The column that says what is wanted and what became of it."""
    column = find_column(table, "--status", name)
    _check_writable(table, "--status", column)
    if column.category not in "SE" and column.base not in _INTEGERS:
        raise ConfigurationError(
            f"{column.quoted} (--status) is {column.type}: words need a text or an enum"
        )
    return as_type(column)


def find_columns(table: Table, columns: Columns) -> dict[str, ColumnType]:
    """The others, by their fields; each is one that can hold what is to be written."""
    found = {}
    for field in fields(columns):
        name = getattr(columns, field.name)
        if field.name == "status" or name is None:
            continue
        option = option_of(field.name)
        column = find_column(table, option, name)
        _check_writable(table, option, column)
        if not can_hold(field.name, column):
            raise ConfigurationError(
                f"{column.quoted} ({option}) is {column.type}: it must be {_KINDS[field.name]}"
            )
        found[field.name] = as_type(column)
    _check_uses(columns)
    return found


def can_hold(field: str, column: TableColumn) -> bool:
    """Whether a column has a type for what this field of `Columns` shows."""
    match _KINDS[field]:
        case "a text":
            return column.category == "S"
        case "a timestamptz":
            return column.base in _ZONED
        case "an integer":
            return column.base in _INTEGERS
        case _:
            return column.category == "S" or column.base in _JSON


def find_key(table: Table, named: tuple[str, ...] | None) -> tuple[ColumnType, ...]:
    """The columns that tell rows apart."""
    name = table.head.full_name
    if named is None and not table.primary_key:
        raise ConfigurationError(
            f"{name} has no primary key: name unique columns that are NOT NULL with --key, or add"
            " one"
        )
    key = [find_column(table, "--key", column) for column in named or table.primary_key]
    names = [column.name for column in key]
    written = ",".join(column.quoted for column in key)
    if len(set(names)) < len(names):
        raise ConfigurationError(f"--key {written} names a column twice")
    for column in key:
        if not column.is_not_null:
            raise ConfigurationError(
                f"{column.quoted} (--key) may be NULL: run ALTER TABLE {name} ALTER COLUMN"
                f" {column.quoted} SET NOT NULL, or take another"
            )
        if column.is_virtual:
            raise ConfigurationError(f"{column.quoted} (--key) is not stored: take another")
    if not any(index.names_rows and set(plain(index)) == set(names) for index in table.indexes):
        raise ConfigurationError(
            f"nothing makes {written} unique in {name}: run CREATE UNIQUE INDEX ON {name}"
            f" ({written}), or name other columns with --key"
        )
    return tuple(as_type(column) for column in key)


def find_payload(table: Table, named: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The columns that the handler is given; None: all, of which none is of bytea."""
    if named is None:
        without_bytes = tuple(c.name for c in table.columns if c.base != "bytea")
        return None if len(without_bytes) == len(table.columns) else without_bytes
    if not named:
        raise ConfigurationError("--payload names no column: leave it out, or name one")
    return tuple(dict.fromkeys(find_column(table, "--payload", name).name for name in named))


def left_out(table: Table, named: tuple[str, ...] | None) -> tuple[str, ...]:
    """Columns that the handler is not given unless they are named: JSON has no bytes."""
    return tuple(c.name for c in table.columns if named is None and c.base == "bytea")


def check_key_unwritten(
    key: Iterable[ColumnType], status: ColumnType, shown: dict[str, ColumnType]
) -> None:
    """ConfigurationError if what is written would change a row's key."""
    written = {"status": status, **shown}
    for field, column in written.items():
        if column.name in {part.name for part in key}:
            raise ConfigurationError(
                f"{readable(column.name)} ({option_of(field)}) is part of the key, which must"
                " not change: take another column"
            )


def as_type(column: TableColumn) -> ColumnType:
    base = "enum" if column.category == "E" else column.base
    return ColumnType(column.name, column.type, base, column.is_not_null)


def _check_writable(table: Table, option: str, column: TableColumn) -> None:
    if column.is_generated:
        raise ConfigurationError(
            f"{column.quoted} ({option}) of {table.head.full_name} is computed by Postgres and"
            " cannot be written: take another column"
        )


def _check_uses(columns: Columns) -> None:
    used: dict[str, str] = {}
    for field in fields(columns):
        name = getattr(columns, field.name)
        if name is None:
            continue
        if name in used:
            raise ConfigurationError(
                f"{readable(name)} is named by {option_of(used[name])} and by"
                f" {option_of(field.name)}: a column can show one thing"
            )
        used[name] = field.name
