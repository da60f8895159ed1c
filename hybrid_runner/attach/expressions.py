"""SQL over a row's columns: read once by Postgres, which says what it means and what it needs."""

from __future__ import annotations

from hybrid_runner.attach.identifiers import readable
from hybrid_runner.attach.quoting import literal
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Expression
from hybrid_runner.model.tables import ReadExpression, Table, TableColumn, Unreadable
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.table_calls import read_expression

_CONDITIONS = {"bool"}
_NUMBERS = {"int2", "int4", "int8", "numeric", "float4", "float8"}
_TIMES = {"timestamptz", "timestamp", "date"}


async def read_condition(
    connection: Connection, table: Table, option: str, text: str
) -> ReadExpression:
    """A condition; ConfigurationError says why it cannot be one."""
    read = await _read(connection, table, option, text)
    _check_type(option, read, _CONDITIONS, "true or false")
    return read


async def read_priority(
    connection: Connection, table: Table, text: str | None
) -> ReadExpression | None:
    """An expression for the priority; ConfigurationError says why it cannot be one."""
    if text is None:
        return None
    read = await _read(connection, table, "priority", text)
    _check_type("priority", read, _NUMBERS, "a number")
    return read


async def read_time(
    connection: Connection, table: Table, text: str | None
) -> ReadExpression | None:
    """An expression for the time of the job; ConfigurationError says why it cannot be one."""
    if text is None:
        return None
    read = await _read(connection, table, "run-at", text)
    _check_type("run-at", read, _TIMES, "a time (timestamptz)")
    if read.type != "timestamptz":  # as columns without a zone are written
        return read._replace(text=f"(({read.text})::timestamp AT TIME ZONE 'UTC')")
    return read


async def read_equality(
    connection: Connection, table: Table, column: TableColumn, word: str
) -> ReadExpression:
    """The condition that a column has a word."""
    return await read_condition(connection, table, "status", f"{column.quoted} = {literal(word)}")


def both(queued: ReadExpression, wanted: ReadExpression) -> Expression:
    """The condition that both hold; each update of a row asks, so it is short, and the word comes
    first: most rows have another.
    """
    if wanted.of("new") in ("true", queued.of("new")):
        return as_rendered(queued)
    return Expression(
        f"({queued.of('new')}) AND ({wanted.of('new')})",
        f"({queued.of('old')}) AND ({wanted.of('old')})",
    )


def as_rendered(read: ReadExpression) -> Expression:
    """With the rows that triggers know."""
    return Expression(read.of("new"), read.of("old"))


async def _read(connection: Connection, table: Table, option: str, text: str) -> ReadExpression:
    if not text.strip() or "\x00" in text:
        raise ConfigurationError(f"--{option} is empty: write SQL over the columns of the table")
    read = await read_expression(connection, table.head, text)
    if isinstance(read, Unreadable):
        raise ConfigurationError(f"--{option} is refused: {read.reason}{_advice(table, read)}")
    _check_contents(table, option, read)
    return read


def _advice(table: Table, unreadable: Unreadable) -> str:
    match unreadable.sqlstate:
        case "42P01" if "FROM-clause" in unreadable.reason:
            return ": write columns without the name of the table"
        case "42501":
            role = readable(table.head.role)
            return f": have it granted to {role} (GRANT TEMPORARY ON DATABASE …, GRANT USAGE …)"
        case "42601":
            return ": write one expression, as it may stand after SELECT"
        case "42703":
            return f": {table.head.full_name} has {listed(table)}"
        case _:
            return ""


def _check_contents(table: Table, option: str, read: ReadExpression) -> None:
    if read.forbidden is not None:
        raise ConfigurationError(
            f"--{option} has {read.forbidden}: only the row's own columns and functions that are"
            " immutable or stable may decide"
        )
    if read.withheld:
        raise ConfigurationError(
            f"--{option} calls {read.withheld[0]}, which not everybody may call, and triggers ask"
            " as whoever writes the row: run GRANT EXECUTE ON FUNCTION"
            f" {read.withheld[0]} TO PUBLIC"
        )
    virtual = [c.name for c in table.columns if c.is_virtual and c.name in read.columns]
    if virtual:
        raise ConfigurationError(
            f"--{option} reads {readable(virtual[0])}, which is computed when it is read:"
            " triggers do not see it, so write its expression instead"
        )


def _check_type(option: str, read: ReadExpression, types: set[str], wanted: str) -> None:
    if read.type not in types:
        raise ConfigurationError(f"--{option} is of type {read.type}, not {wanted}")


def listed(table: Table) -> str:
    """The table's columns, in a few words."""
    names = [column.quoted for column in table.columns]
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
