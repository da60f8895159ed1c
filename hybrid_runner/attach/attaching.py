"""Attaches a table: everything in one transaction, then jobs for the rows that wait already."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace

from hybrid_runner.attach.checking import check, in_one_line, read_table
from hybrid_runner.attach.definitions import stored_definition
from hybrid_runner.attach.quoting import identifier
from hybrid_runner.attach.rendering import attaching
from hybrid_runner.attach.script import Batches, attaching_script
from hybrid_runner.attach.trial_write import notes_of_trial
from hybrid_runner.errors import ConfigurationError, DatabaseError, RunnerError
from hybrid_runner.model.source_views import Attached, SourceRecord, SourceView
from hybrid_runner.model.sources import Source, SourceDefinition
from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.lock_waits import Connects
from hybrid_runner.storage.row_calls import table_blocks, want_rows
from hybrid_runner.storage.source_records import record_source, reserve_source
from hybrid_runner.storage.table_changes import change_tables, run_statements
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.attach")

BATCH = 10_000
"""Rows that are given jobs in one transaction."""
SAID_EVERY = 100_000
"""Rows after which the log says how far it is."""
BLOCKS = 64
"""Of a larger table so many blocks are read in one transaction: some thousand rows."""
MOST_IN_BLOCKS = BLOCKS * 300
"""A block has no room for more rows."""
_NOT_RECONCILED = (
    "rows that were missed are not looked for: they cannot be told from those that were left out"
)
_UNCOMPUTABLE = ("22", "42")
"""SQLSTATEs of expressions without a value."""


@dataclass(frozen=True)
class Plan:
    """What is to be done with a definition that was checked."""

    source: Source
    record: SourceRecord
    statements: Sequence[str]
    notes: tuple[str, ...]


async def attach(
    connection: Connection, connects: Connects, definition: SourceDefinition, *, longest: float
) -> Attached:
    """Attach a table, or attach it anew; again from its start while somebody holds a lock for up to
    `longest` seconds.
    """
    plan = await change_tables(
        lambda: _made(connection, definition), connection, connects, longest=longest, what="attach"
    )
    queued = 0 if definition.backfill == "none" else await _backfill(connection, plan.record)
    return _said(plan, is_kept=True, queued=queued)


async def check_only(
    connection: Connection, connects: Connects, definition: SourceDefinition, *, longest: float
) -> Attached:
    """Do the same, but for the backfill, and take it back."""

    async def make() -> Plan:
        plan = await _made(connection, definition)
        return replace(plan, notes=(*plan.notes, *await notes_of_trial(connection, plan.source)))

    plan = await change_tables(
        make, connection, connects, longest=longest, what="check", keeps=False
    )
    return _said(plan)


async def as_script(
    connection: Connection, connects: Connects, definition: SourceDefinition, *, longest: float
) -> Attached:
    """Check it, change nothing, and give a script for somebody who has the rights."""
    plan = await change_tables(
        lambda: _plan(connection, definition, for_script=True),
        connection,
        connects,
        longest=longest,
        what="ask",
        keeps=False,
    )
    sql = attaching_script(
        plan.record,
        plan.source.runner_owner,
        plan.statements,
        plan.notes,
        None if definition.backfill == "none" else Batches(BATCH, BLOCKS, MOST_IN_BLOCKS),
    )
    return replace(_said(plan), sql=sql)


async def with_fault(connection: Connection, connects: Connects, view: SourceView) -> SourceView:
    """What is wrong with the table itself, if it is still there: a column that was dropped, a word
    that it no longer takes. Not for a superuser: to parse an expression may run its owner's code.
    """
    if view.named_now is None:
        return view

    async def look() -> str | None:
        definition = stored_definition(view.definition, str(view.named_now))
        with in_one_line():
            head = (await read_table(connection, definition.table)).head
        if head.outranked_by_asker is not None:
            return head.runner_owner
        await check(connection, definition, view.id, for_script=True)
        return None

    try:
        checker = await change_tables(
            look, connection, connects, longest=0, what="look", keeps=False
        )
    except ConfigurationError as error:
        return replace(view, fault=str(error))
    except (RunnerError, TypeError, LookupError):  # it cannot be looked at, or was not made by us
        return view
    return replace(view, checked_by=checker)


async def _plan(connection: Connection, definition: SourceDefinition, *, for_script: bool) -> Plan:
    checked = await check(connection, definition, 0, for_script=for_script)
    schema, table = map(identifier, (checked.source.schema, checked.source.table))
    number, name = await reserve_source(connection, f"{schema}.{table}", definition.kind)
    source = replace(checked.source, number=number)
    is_reconciled = definition.backfill == "all"
    record = SourceRecord(
        number,
        name,
        source.kind,
        source.queue,
        source.owner,
        json.dumps(asdict(source.definition) | {"words": asdict(source.words)}),
        is_reconciled,
        None if is_reconciled else _NOT_RECONCILED,
    )
    notes = checked.warnings if is_reconciled else (*checked.warnings, _NOT_RECONCILED)
    return Plan(source, record, attaching(source), notes)


async def _made(connection: Connection, definition: SourceDefinition) -> Plan:
    plan = await _plan(connection, definition, for_script=False)
    if not await record_source(connection, plan.record):
        raise DatabaseError("somebody else has attached the table meanwhile: attach again")
    await run_statements(connection, plan.statements)
    await _try(connection, plan.record.number)
    return plan


async def _try(connection: Connection, source: int) -> None:
    """What fails for every row, such as 1/0, would fail in the application's statements. Asked of
    no row, by what was made for the table: so with its owner's rights.
    """
    try:
        await row_calls.want_rows(connection, source, 0)
        await row_calls.find_row_holders(connection, source, [])
    except RunnerError as error:
        if not error.sqlstate.startswith(_UNCOMPUTABLE):
            raise
        raise ConfigurationError(
            f"the SQL over rows is refused: it fails whatever the row is: {error}"
        ) from None


async def _backfill(connection: Connection, record: SourceRecord) -> int:
    """Batch by batch, each of which stays when this is broken off: to attach again goes on."""
    queued = said = 0
    async for batch in _batches(connection, record.number):
        queued += batch
        if queued >= said + SAID_EVERY:
            said = queued
            log.info(
                "%s: %d rows that were wanted already are queued",
                record.relation,
                queued,
                extra=log_event("source.backfilled", source=record.number, queued=queued),
            )
    return queued


async def _batches(connection: Connection, source: int) -> AsyncIterator[int]:
    """How many rows each batch has queued. A large table is read once, from its start to its end;
    what was held, or has moved meanwhile, comes last.
    """
    blocks = await table_blocks(connection, source)
    for first in range(0, blocks if blocks > BLOCKS else 0, BLOCKS):
        yield await want_rows(connection, source, MOST_IN_BLOCKS, first, BLOCKS)
    batch = BATCH
    while batch == BATCH:
        batch = await want_rows(connection, source, BATCH)
        yield batch


def _said(plan: Plan, *, is_kept: bool = False, queued: int = 0) -> Attached:
    record = plan.record
    return Attached(
        id=record.number,
        table=record.relation,
        kind=record.kind,
        queue=record.queue,
        is_kept=is_kept,
        queued=queued,
        guessed=(),
        notes=plan.notes,
        sql=None,
    )
