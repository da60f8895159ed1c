"""The storage calls about other people's tables, which somebody wants to attach."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import asyncpg

from hybrid_runner.errors import DatabaseError
from hybrid_runner.model.tables import (
    FoundTable,
    OtherSource,
    ReadExpression,
    SchemaRights,
    Table,
    TableCheck,
    TableColumn,
    TableHead,
    TableIndex,
    TableReference,
    TableTrigger,
    Unreadable,
)
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.failures import translate
from hybrid_runner.storage.queries import template

_OWN_PATH = "pg_catalog, pg_temp"
_VIEW = "expression_of_source"
_ALIAS = "row_of_source"
_REFUSED_CLASSES = ("42", "22", "23", "0A", "P0", "54")
"""Of SQLSTATEs: what was asked is at fault."""


async def describe_schema(on: Fetches) -> SchemaRights | None:
    """Whether whoever asks may use the schema hybrid_runner; None: there is none."""
    rows = await fetch(on, "describe_schema")
    return SchemaRights(*rows[0]) if rows else None


async def find_tables(on: Fetches, schema: str | None, name: str) -> list[FoundTable]:
    """The relations that a name may mean."""
    return [FoundTable(*row) for row in await fetch(on, "find_tables", schema, name)]


async def hold_table(connection: Connection, full_name: str) -> None:
    """Nobody alters it for the rest of the transaction; whoever has no right to name it, cannot."""
    with contextlib.suppress(asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedTableError):
        try:
            async with connection.transaction():
                await connection.prepare(_filled("held_table", {"relation": full_name}))
        except asyncpg.LockNotAvailableError as error:
            raise translate(error) from error


async def try_row(on: Fetches, source: int) -> str:
    """Write into one wanted row that its job runs, and say what was done; nothing if none is."""
    return str(await fetch_value(on, "try_row", source) or "")


async def describe_other_sources(on: Fetches, oid: int, kind: str) -> list[OtherSource]:
    """What else the rows of a table are worked on for."""
    return [OtherSource(*row) for row in await fetch(on, "describe_other_sources", oid, kind)]


async def describe_table(on: Fetches, oid: int) -> Table | None:
    """All that Postgres knows of it; None: it is gone."""
    heads = await fetch(on, "describe_table", oid)
    if not heads:
        return None
    columns = await fetch(on, "describe_columns", oid)
    indexes = await fetch(on, "describe_indexes", oid)
    checks = await fetch(on, "describe_checks", oid)
    triggers = await fetch(on, "describe_triggers", oid)
    references = await fetch(on, "describe_references", oid)
    return Table(
        TableHead(*heads[0]),
        tuple(TableColumn(*_frozen(row)) for row in columns),
        tuple(TableIndex(*_frozen(row)) for row in indexes),
        tuple(TableCheck(*_frozen(row)) for row in checks),
        tuple(TableTrigger(*_frozen(row)) for row in triggers),
        tuple(TableReference(*row) for row in references),
    )


async def read_expression(
    connection: Connection, table: TableHead, text: str
) -> ReadExpression | Unreadable:
    """What Postgres makes of an expression over the table's columns; nothing is left behind.

    It must run in a transaction.
    """
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        return await _read(connection, table, text)
    except asyncpg.PostgresError as error:
        return _unreadable(error)
    finally:
        await savepoint.rollback()


async def _read(connection: Connection, table: TableHead, text: str) -> ReadExpression | Unreadable:
    alias = _ALIAS
    while alias in text.lower():
        alias += "_"
    places = {
        "expression": text,
        "relation": table.full_name,
        "alias": alias,
        "beside": f"{alias}_beside",
        "name": _VIEW,
    }
    path = await fetch_value(connection, "expression_path", table.oid)
    await fetch(connection, "set_search_path", path)
    statement = await connection.prepare(_filled("expression", places))
    if statement.get_parameters():
        return Unreadable("it has a parameter ($1)")
    expression, *more = statement.get_attributes()
    if len(more) != 1:
        return Unreadable("it is more than one expression")
    await connection.fetch(_filled("expression_view", places))
    await fetch(connection, "set_search_path", _OWN_PATH)
    row = (await fetch(connection, "describe_expression", f"pg_temp.{_VIEW}", table.oid))[0]
    definition, *found = _frozen(row)
    end = (
        f" AS expression\n   FROM ({table.full_name} {alias}\n"
        f"     CROSS JOIN ( SELECT) {alias}_beside);"
    )
    if not (definition.startswith(" SELECT") and definition.endswith(end)):
        raise DatabaseError(f"Postgres words views in another way than expected: {definition!r}")
    read = definition.removeprefix(" SELECT").removesuffix(end).strip()
    return ReadExpression(read, alias, expression.type.name, *found)


async def hold_word(connection: Connection, column_type: str, word: str) -> str | Unreadable:
    """The word, which is a constant of SQL, as a column of this type holds it.

    This and the next two must run in a transaction.
    """
    places = {"type": column_type, "word": word}
    held: str | Unreadable = await _tried(connection, "word", places)
    return held


async def pass_check(
    connection: Connection, column: TableColumn, check: TableCheck, word: str
) -> bool | Unreadable:
    """Whether a CHECK constraint of this one column lets the word pass."""
    places = {
        "type": column.type,
        "word": word,
        "column": column.quoted,
        "condition": check.expression,
    }
    passes: bool | Unreadable = await _tried(connection, "checked_word", places)
    return passes


async def is_referenced(
    connection: Connection, column: TableColumn, reference: TableReference, word: str
) -> bool | Unreadable:
    """Whether the table that a foreign key of this column refers to has the word."""
    places = {
        "type": column.type,
        "word": word,
        "relation": reference.to_table,
        "column": reference.to_column,
    }
    there: bool | Unreadable = await _tried(connection, "referenced_word", places)
    return there


async def _tried(connection: Connection, name: str, places: Mapping[str, str]) -> Any:
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        return (await connection.fetch(_filled(name, places)))[0][0]
    except asyncpg.PostgresError as error:
        return _unreadable(error)
    finally:
        await savepoint.rollback()


def _unreadable(error: asyncpg.PostgresError) -> Unreadable:
    """Why Postgres refused what was asked; other failures are raised."""
    state = str(getattr(error, "sqlstate", "") or "")
    if state[:2] not in _REFUSED_CLASSES:
        raise translate(error) from error
    return Unreadable(" ".join((error.args[0] if error.args else state).split())[:300], state)


def _filled(name: str, places: Mapping[str, str]) -> str:
    """A statement of sql/sources with its places filled."""
    return re.sub(r"<<(\w+)>>", lambda place: places[place[1]], template(name))


def _frozen(row: asyncpg.Record) -> list[Any]:
    return [tuple(value) if isinstance(value, list) else value for value in row]
