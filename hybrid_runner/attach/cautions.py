"""What somebody should know who attaches a table, one line each: none of it prevents that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid_runner.attach.columns import option_of
from hybrid_runner.attach.identifiers import readable
from hybrid_runner.attach.quoting import literal
from hybrid_runner.attach.words import tried_checks, word_of
from hybrid_runner.model.kinds import KindFound
from hybrid_runner.model.sources import Source
from hybrid_runner.model.tables import OtherSource, ReadExpression, Table, TableColumn

SCANNED = 100_000
"""Rows up to which a table is read without an index."""
_SHORT = 64
"""Characters that a worker's name, or a word on an error, may well have."""
_CLEARED = ("worker_id", "started_at", "heartbeat_at", "finished_at")


def cautions(table: Table, source: Source, conditions: Sequence[ReadExpression]) -> Iterator[str]:
    """All of them, in order of weight."""
    yield from _refused_later(table, source)
    yield from _missing_word(source)
    yield from _triggers(table, source)
    yield from _types(table, source)
    yield from _changing(conditions)
    yield from _index(table, source)


def about_kinds(source: Source, kind: KindFound, others: Sequence[OtherSource]) -> Iterator[str]:
    """What else there is of the kind, and of the table."""
    if kind.meant is not None:
        yield f"no worker has declared the kind {kind.kind}: was {kind.meant} meant?"
    for other in others:
        if (other.status, other.queued) == (source.status.name, source.words.queued):
            yield (
                f"the kind {other.kind} works on rows with the same word in the same column: those"
                " that both want get two jobs, which write the same columns"
            )


def about_words(source: Source, status: TableColumn) -> Iterator[str]:
    """What a condition says that it may not mean."""
    named, queued = word_of(status, source.definition.when), source.words.queued
    if named is not None and named != queued:
        yield (
            f"--when speaks of {named!r}, and a row is wanted only while {status.quoted} is"
            f" {queued!r} (--queued)"
        )


def _refused_later(table: Table, source: Source) -> Iterator[str]:
    """What no word alone can be held against."""
    written = {column.name for column in (source.status, *source.columns.values())}
    status = table.column(source.status.name)
    tried = [] if status is None else tried_checks(table, status)
    for check in table.checks:
        if written.intersection(check.columns) and check not in tried:
            yield (
                f"the constraint {readable(check.name)} may refuse what is written into a row,"
                f" which then is written late, or never: {check.expression}"
            )
    for reference in table.references:
        is_tried = reference.column == source.status.name and reference.shows_all
        if reference.column in written and not is_tried:
            yield (
                f"{readable(reference.column)} refers to {reference.to_table}: what is written"
                f" there and is no {reference.to_column} is refused, and the row then is written"
                " late, or never"
            )
    for index in table.indexes:
        has_status = source.status.name in index.columns
        if index.is_unique and (has_status or _speaks_of(index.predicate, source.status.name)):
            yield (
                f"the unique index {readable(index.name)} has {readable(source.status.name)}"
                " in it, and may refuse a word that another row has: the row then is written late,"
                " or never"
            )


def _missing_word(source: Source) -> Iterator[str]:
    if source.definition.words.cancelled is None:
        yield (
            f"rows whose jobs are cancelled say {source.words.failed!r}: with --cancelled they have"
            " a word of their own"
        )


def _triggers(table: Table, source: Source) -> Iterator[str]:
    heartbeat = source.columns.get("heartbeat_at")
    at_writes = [trigger.name for trigger in table.triggers if not trigger.columns]
    at_heartbeats = [
        trigger.name
        for trigger in table.triggers
        if heartbeat is not None and (not trigger.columns or heartbeat.name in trigger.columns)
    ]
    if at_heartbeats:
        yield (
            f"each heartbeat, every 30 s, fires {_listed(at_heartbeats)}: what that sets, like"
            " updated_at or a version, moves while a job runs; without --heartbeat-at it does not"
        )
    elif at_writes:
        yield (
            f"each time a row is written {_listed(at_writes)} fires: what that sets, like"
            " updated_at or a version, moves when a job begins and ends"
        )


def _types(table: Table, source: Source) -> Iterator[str]:
    for field, column_type in source.columns.items():
        column = table.column(column_type.name)
        if column is None:
            continue
        what = f"{column.quoted} ({option_of(field)})"
        if column.base == "timestamp":
            yield f"{what} is a timestamp without time zone: what is written there is UTC"
        room = column.length
        if field == "result" and room is not None:
            yield f"{what} has room for {room} characters: longer results are cut"
        elif room is not None and room < (_SHORT if field == "worker_id" else 10 * _SHORT):
            yield f"{what} has room for {room} characters: what is longer is cut"
        if column.is_not_null and field in _CLEARED:
            yield f"{what} is NOT NULL: when a job is put back, it keeps what it says"


def _changing(conditions: Sequence[ReadExpression]) -> Iterator[str]:
    names = sorted({name for condition in conditions for name in condition.changing})
    if names:
        yield (
            f"{', '.join(names)} may answer differently without a change of the row: nothing"
            " happens then until the row is written, or the next row check"
        )
    types = sorted({name for condition in conditions for name in condition.by_session})
    if types:
        yield (
            f"a cast to {', '.join(types)} goes by the settings of the session, such as its time"
            " zone: a row may be wanted for whoever writes it, and not for the worker, which"
            " cancels its job; write AT TIME ZONE 'UTC' before the cast"
        )


def _index(table: Table, source: Source) -> Iterator[str]:
    if has_index(table, source):
        return
    statement = offered_index(table, source)
    if table.head.rows > SCANNED and not source.definition.scan:
        yield (
            f"{table.head.full_name} has {table.head.rows:.0f} rows and no index of those that are"
            f" wanted: rows that were missed are not looked for without --scan, or {statement}"
        )
    else:
        yield f"an index makes it cheap to look for rows that were missed: {statement}"


def has_index(table: Table, source: Source) -> bool:
    """Whether one leads to the rows that are wanted, and to those that run."""
    return any(
        index.columns[:1] == (source.status.name,)
        and (
            index.predicate is None
            or all(literal(word) in index.predicate for word in _live_words(source))
        )
        for index in table.indexes
    )


def offered_index(table: Table, source: Source) -> str:
    """The statement that makes one, of no more than the rows that are wanted or run."""
    column = table.column(source.status.name)
    status = column.quoted if column else readable(source.status.name)
    words = ", ".join(literal(word) for word in _live_words(source))
    at_once = "" if table.head.kind == "p" else " CONCURRENTLY"  # Postgres has no other for those
    return f"CREATE INDEX{at_once} ON {table.head.full_name} ({status}) WHERE {status} IN ({words})"


def _live_words(source: Source) -> list[str]:
    words = source.words
    return list(dict.fromkeys([str(words.queued), words.running, str(words.snoozed)]))


def _speaks_of(predicate: str | None, column: str) -> bool:
    return predicate is not None and readable(column) in predicate


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(readable(name) for name in names[:3])
    what = "the trigger" if len(names) == 1 else "the triggers"
    return f"{what} {shown}" + (" …" if len(names) > 3 else "")
