"""What is written into each column, for each thing that can become of a job: `a` is what became of
it, `new` the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hybrid_runner.attach.quoting import identifier, literal
from hybrid_runner.model.sources import ColumnType, Source, Words

TEXTS = {"text", "varchar", "bpchar", "citext"}
_JSON = {"json", "jsonb"}
_ENDED = "('completed', 'failed', 'cancelled')"


def assignments(source: Source) -> str:
    """The SET list of the update."""
    columns = {"status": source.status, **source.columns}
    return ",\n".join(
        f"            {identifier(columns[name].name)} = {text}"
        for name, write in _WRITES.items()
        if name in columns
        for text in [_status(source) if write is None else write(columns[name])]
    )


def shows(words: Words, word: str) -> str:
    """Which of our words this is; the same word twice counts as the first."""
    meanings: dict[str, str] = {}
    for text, meaning in _meanings(words):
        meanings.setdefault(text, meaning)
    cases = " ".join(f"WHEN {literal(text)} THEN '{meaning}'" for text, meaning in meanings.items())
    return f"CASE {word} {cases} ELSE 'other' END"


def _meanings(words: Words) -> Iterator[tuple[str, str]]:
    yield needed(words.queued), "queued"
    yield words.running, "running"
    yield needed(words.snoozed), "running"
    yield words.completed, "ended"
    yield words.failed, "ended"
    yield needed(words.cancelled), "ended"


def needed(word: str | None) -> str:
    """A word that a checked source has."""
    if word is None:
        raise ValueError("the source was not checked: a word is missing")
    return word


def time_of(column: ColumnType, alias: str) -> str:
    """A column of times as timestamptz: without a zone it is UTC."""
    value = f"{alias}.{identifier(column.name)}"
    return value if column.base == "timestamptz" else f"{value}::timestamp AT TIME ZONE 'UTC'"


def assigned(source: Source) -> str:
    """The word that is written for a state."""
    words = source.words
    cases = " ".join(
        f"WHEN '{state}' THEN {literal(word)}"
        for state, word in [
            ("running", words.running),
            ("snoozed", needed(words.snoozed)),
            ("completed", words.completed),
            ("failed", words.failed),
            ("cancelled", needed(words.cancelled)),
        ]
    )
    return f"CASE a.state {cases} ELSE {literal(needed(words.queued))} END"


def _status(source: Source) -> str:
    column = source.status
    kept = f"WHEN a.state = 'beat' THEN new.{identifier(column.name)}::text"
    return f"(CASE {kept} ELSE {assigned(source)} END)::{column.type}"


def _kept(column: ColumnType) -> str:
    return f"new.{identifier(column.name)}"


def _cleared(column: ColumnType) -> str:
    return _kept(column) if column.is_not_null else f"NULL::{column.type}"


def _as_time(column: ColumnType, value: str) -> str:
    zoned = value if column.base == "timestamptz" else f"({value} AT TIME ZONE 'UTC')"
    return f"{zoned}::{column.type}"


def _worker_id(column: ColumnType) -> str:
    worker = f"a.worker::{column.type}"
    return (
        f"CASE WHEN a.state = 'running' OR a.state IN {_ENDED} AND NOT a.was_queued"
        f" THEN coalesce({worker}, {_kept(column)})"
        f" WHEN a.state = 'beat' OR a.state IN {_ENDED} THEN {_kept(column)}"
        f" ELSE {_cleared(column)} END"
    )


def _started_at(column: ColumnType) -> str:
    started = _as_time(column, "a.started")
    return (
        f"CASE WHEN a.state = 'running' OR a.state IN {_ENDED} AND NOT a.was_queued"
        f" THEN coalesce({started}, {_kept(column)})"
        f" WHEN a.state IN ('beat', 'snoozed') OR a.state IN {_ENDED} THEN {_kept(column)}"
        f" ELSE {_cleared(column)} END"
    )


def _heartbeat_at(column: ColumnType) -> str:
    return (
        "CASE WHEN a.state IN ('running', 'beat') THEN"
        f" {_as_time(column, 'clock_timestamp()')}"
        f" WHEN a.state IN {_ENDED} THEN {_kept(column)} ELSE {_cleared(column)} END"
    )


def _retry_count(column: ColumnType) -> str:
    return f"coalesce(greatest(a.retry, 0)::{column.type}, {_kept(column)})"


def _finished_at(column: ColumnType) -> str:
    return (
        f"CASE WHEN a.state IN {_ENDED} THEN {_as_time(column, 'a.finished')}"
        f" WHEN a.state = 'beat' THEN {_kept(column)} ELSE {_cleared(column)} END"
    )


def _result(column: ColumnType) -> str:
    """A handler that gives nothing back may have written the column itself."""
    given = "a.result" if column.base in _JSON else "a.result::jsonb #>> '{}'"
    return (
        "CASE WHEN a.state = 'completed' AND a.result <> 'null' THEN"
        f" ({given})::{column.type} ELSE {_kept(column)} END"
    )


def _error(column: ColumnType) -> str:
    if column.base in _JSON:
        nothing, last = f"'[]'::{column.type}", f"a.error::{column.type}"
    else:
        nothing = f"''::{column.type}"
        last = f"(a.error::jsonb -> -1 ->> 'message')::{column.type}"
    cleared = nothing if column.is_not_null else f"NULL::{column.type}"
    return (
        f"CASE a.state WHEN 'completed' THEN {cleared} ELSE coalesce({last}, {_kept(column)}) END"
    )


_WRITES: dict[str, Callable[[ColumnType], str] | None] = {
    "status": None,
    "worker_id": _worker_id,
    "started_at": _started_at,
    "heartbeat_at": _heartbeat_at,
    "retry_count": _retry_count,
    "finished_at": _finished_at,
    "result": _result,
    "error": _error,
}
