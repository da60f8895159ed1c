"""Columns and words by their usual names; what was given is kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import NamedTuple

from hybrid_runner.attach.checking import in_one_line, read_table
from hybrid_runner.attach.columns import can_hold, find_column, option_of
from hybrid_runner.attach.expressions import listed
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.model.tables import Table, TableColumn
from hybrid_runner.storage.connections.connection import Connection

_STATUS = ("status", "state", "job_status", "run_status", "processing_status")
# The first that is there. No name here may be one that applications use for something else.
_COLUMNS = {
    "worker_id": ("worker_id", "processing_worker_id", "worker", "claimed_by", "locked_by"),
    "started_at": ("started_at", "processing_started_at", "claimed_at", "locked_at"),
    "heartbeat_at": ("heartbeat_at", "last_heartbeat_at", "last_heartbeat", "heartbeat"),
    "retry_count": ("retry_count", "retries", "failed_attempts", "error_count"),
    "finished_at": ("finished_at", "completed_at", "ended_at", "processed_at"),
    "result": ("result", "results", "output"),
    "error": ("error", "error_message", "last_error", "error_details", "error_detail"),
}
_WORDS = {
    "queued": ("pending", "queued", "waiting", "new", "todo", "submitted", "requested", "created"),
    "running": ("processing", "running", "in_progress", "in progress", "in-progress", "working"),
    "completed": ("completed", "complete", "succeeded", "success", "done", "finished", "ready"),
    "failed": ("failed", "failure", "error", "errored"),
    "cancelled": ("cancelled", "canceled", "aborted"),
    "snoozed": ("snoozed", "sleeping", "delayed"),
}
_NEEDED = ("queued", "running", "completed", "failed")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")


class Guessed(NamedTuple):
    """Fields of Words and of Columns, and what was guessed of them, as options of `attach`."""

    words: dict[str, str]
    columns: dict[str, str]
    said: tuple[str, ...]


async def guess(
    connection: Connection,
    table: str,
    words: Mapping[str, str],
    columns: Mapping[str, str],
) -> Guessed:
    """What is not given, by usual names; ConfigurationError says what has none."""
    with in_one_line():
        known = await read_table(connection, table)
        _check_names(words, columns)
        found = guess_columns(known, columns)
        status = find_column(known, "--status", found["status"])
        meant = guess_words(known, status, words)
    said = [_option(name, value) for name, value in found.items() if name not in columns]
    said += [_option(name, word) for name, word in meant.items() if name not in words]
    return Guessed(meant, found, tuple(said))


def guess_columns(table: Table, given: Mapping[str, str]) -> dict[str, str]:
    """Columns by the fields of `Columns`; status is there in any case."""
    found = dict(given)
    if "status" not in found:
        named = _first(_STATUS, (c for c in table.columns if c.category in "SE"))
        if named is None:
            raise ConfigurationError(
                f"no column of {table.head.full_name} looks like a status: name it with --status;"
                f" there are {listed(table)}"
            )
        found = {"status": named.name, **found}
    for field, names in _COLUMNS.items():
        if field in found:
            continue
        taken = {*found.values(), *table.primary_key}
        free = (
            column
            for column in table.columns
            if column.name not in taken and not column.is_generated and can_hold(field, column)
        )
        column = _first(names, free)
        if column is not None:
            found[field] = column.name
    return found


def guess_words(table: Table, status: TableColumn, given: Mapping[str, str]) -> dict[str, str]:
    """Words by the fields of `Words`, of those that the column can hold."""
    labels = _labels(table, status)
    free = {label.lower(): label for label in labels if label not in given.values()}
    found = dict(given)
    for field, usual in _WORDS.items():
        if field in found:
            continue
        default = _default(status) if field == "queued" else None
        word = next((free[word] for word in (default, *usual) if word in free), None)
        if word is not None:
            found[field] = word
            del free[word.lower()]
    missing = [f"--{field}" for field in _NEEDED if field not in found]
    if missing:
        there = (
            f"it has {', '.join(labels[:20])}" if labels else "no enum and no CHECK names its words"
        )
        raise ConfigurationError(
            f"which words of {status.quoted} are {' and '.join(missing)} cannot be guessed: name"
            f" them; {there}"
        )
    return found


def _check_names(words: Mapping[str, str], columns: Mapping[str, str]) -> None:
    for given, kind in ((words, Words), (columns, Columns)):
        names = [field.name for field in fields(kind)]
        for name in given.keys() - set(names):
            raise ConfigurationError(
                f"{kind.__name__.lower()} has no field {name!r}: it has {', '.join(names)}"
            )


def _first(names: tuple[str, ...], columns: Iterable[TableColumn]) -> TableColumn | None:
    there = {column.name.lower(): column for column in columns}
    return next((there[name] for name in names if name in there), None)


def _labels(table: Table, status: TableColumn) -> list[str]:
    """The words that Postgres lets into the column, where it says which."""
    if status.labels:
        return list(status.labels)
    listed_words = [
        word.replace("''", "'")
        for check in table.checks
        if check.columns == (status.name,)
        for word in _LITERAL.findall(check.expression)
    ]
    return list(dict.fromkeys(listed_words))


def _default(status: TableColumn) -> str | None:
    """The word that a new row has, unless it is one for something else than queued."""
    found = _LITERAL.match(status.default or "")
    if found is None:
        return None
    word = found[1].replace("''", "'").lower()
    others = (usual for field, usual in _WORDS.items() if field != "queued")
    return None if any(word in usual for usual in others) else word


def _option(field: str, value: str) -> str:
    return f"{option_of(field)} {shlex.quote(value)}"
