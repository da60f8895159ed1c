"""From what somebody asks for to a source that is ready to be made; or one line why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hybrid_runner.attach.cautions import about_kinds, about_words, cautions
from hybrid_runner.attach.columns import (
    check_key_unwritten,
    find_column,
    find_columns,
    find_key,
    find_payload,
    find_status,
    left_out,
)
from hybrid_runner.attach.expressions import (
    as_rendered,
    both,
    read_condition,
    read_equality,
    read_priority,
    read_time,
)
from hybrid_runner.attach.table_checks import (
    check_rights,
    check_row_security,
    check_table,
    check_triggers,
    find_table,
)
from hybrid_runner.attach.words import check_words, has_own_word_for_cancelled, resolve
from hybrid_runner.display import one_line
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import check_queue
from hybrid_runner.handlers.new_job_checks import check_kind
from hybrid_runner.model.sources import Source, SourceDefinition, Words
from hybrid_runner.model.tables import ReadExpression, Table, TableColumn
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.kind_calls import look_up_kinds
from hybrid_runner.storage.table_calls import describe_other_sources, describe_table, hold_table

_LONGEST_LINE = 1000
"""Characters."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A source that can be made, and what somebody should know about it."""

    source: Source
    warnings: tuple[str, ...] = ()
    """One line each."""


@contextmanager
def in_one_line() -> Iterator[None]:
    """Refusals are one line, whatever is in the names and words of others."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(shown(str(error))) from error


def shown(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


async def check(
    connection: Connection,
    definition: SourceDefinition,
    number: int,
    *,
    for_script: bool = False,
) -> Checked:
    """All that was asked for, held against the table as it is; ConfigurationError is one line that
    says what would help. It must run in a transaction, and leaves nothing in it.

    `for_script`: whoever asks needs no right to attach it.
    """
    with in_one_line():
        return await _check(connection, definition, number, for_script=for_script)


async def _check(
    connection: Connection, definition: SourceDefinition, number: int, *, for_script: bool
) -> Checked:
    check_kind(definition.kind)
    (kind,) = await look_up_kinds(connection, [definition.kind])
    queue = definition.queue or kind.queue
    check_queue(queue)
    table = await read_table(connection, definition.table)
    check_rights(table.head, trust_owner=definition.trust_owner, for_script=for_script)
    check_row_security(table.head)
    check_triggers(table)
    key = find_key(table, definition.key)
    status = find_status(table, definition.columns.status)
    columns = find_columns(table, definition.columns)
    check_key_unwritten(key, status, columns)
    payload = find_payload(table, definition.payload)
    status_column = find_column(table, "--status", status.name)
    words = resolve(definition.words, status_column, definition.when)
    await check_words(connection, table, status_column, words)
    wanted = await read_condition(connection, table, "when", definition.when)
    queued = await read_equality(connection, table, status_column, str(words.queued))
    cancel = await _cancel(connection, table, status_column, definition.cancel_when, words)
    priority = await read_priority(connection, table, definition.priority)
    run_at = await read_time(connection, table, definition.run_at)
    head = table.head
    source = Source(
        number=number,
        schema=head.schema,
        table=head.name,
        owner=head.owner,
        owner_is_superuser=head.owner_is_superuser,
        kind=definition.kind,
        queue=queue,
        runner_owner=head.runner_owner,
        key=key,
        condition=both(queued, wanted),
        words=words,
        status=status,
        columns=columns,
        cancel=cancel and as_rendered(cancel),
        priority=priority and as_rendered(priority),
        run_at=run_at and as_rendered(run_at),
        payload=payload,
        left_out=left_out(table, definition.payload),
        on_delete=definition.on_delete,
        by_row=head.kind == "p" or head.is_child,
        search_path=head.search_path,
        definition=definition,
    )
    others = await describe_other_sources(connection, head.oid, definition.kind)
    conditions = [wanted] if cancel is None else [wanted, cancel]
    warnings = [
        *about_kinds(source, kind, others),
        *about_words(source, status_column),
        *cautions(table, source, conditions),
    ]
    return Checked(source=source, warnings=tuple(map(shown, warnings)))


async def read_table(connection: Connection, name: str) -> Table:
    """The table of that name, if it is one that can be a source; nobody alters it until the
    transaction ends.
    """
    found = await find_table(connection, name)
    await hold_table(connection, found.full_name)
    table = await describe_table(connection, found.oid)
    if table is None:
        raise ConfigurationError(f"{found.full_name} was dropped a moment ago")
    check_table(table.head)
    return table


async def _cancel(
    connection: Connection, table: Table, status: TableColumn, when: str | None, words: Words
) -> ReadExpression | None:
    if when is not None:
        return await read_condition(connection, table, "cancel-when", when)
    if has_own_word_for_cancelled(words):
        return await read_equality(connection, table, status, str(words.cancelled))
    return None
