"""The words of a status column: which they are, and whether it can hold them."""

from __future__ import annotations

import re
from dataclasses import asdict

from hybrid_runner.attach.identifiers import readable
from hybrid_runner.attach.quoting import literal
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Words
from hybrid_runner.model.tables import Table, TableCheck, TableColumn, Unreadable
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.table_calls import hold_word, is_referenced, pass_check

_FINAL = ("completed", "failed", "cancelled")


def resolve(words: Words, status: TableColumn, when: str) -> Words:
    """All words, those given and those that follow from them."""
    queued = words.queued or word_of(status, when)
    if queued is None:
        raise ConfigurationError(
            f"--queued is missing: say which word of {status.quoted} means that a row is wanted"
        )
    resolved = Words(
        queued=queued,
        running=words.running,
        completed=words.completed,
        failed=words.failed,
        cancelled=words.cancelled or words.failed,
        snoozed=words.snoozed or words.running,
    )
    _check_differences(resolved)
    return resolved


def has_own_word_for_cancelled(words: Words) -> bool:
    """Whether the word for cancelled means nothing else."""
    others = (words.queued, words.running, words.completed, words.failed, words.snoozed)
    return words.cancelled not in others


def word_of(status: TableColumn, when: str) -> str | None:
    """The word that a condition compares the status with; None: it does not, or with several."""
    names = {re.escape(status.quoted), re.escape(readable(status.name))}
    column = rf"(?<![\w.\"])(?:{'|'.join(sorted(names))})"
    found = set(re.findall(rf"{column}\s*=\s*'((?:[^'\\]|'')+)'", when, re.IGNORECASE))
    return found.pop().replace("''", "'") if len(found) == 1 else None


def _check_differences(words: Words) -> None:
    given = asdict(words)
    for name, word in given.items():
        if not word or "\x00" in word:
            raise ConfigurationError(f"--{name} is empty: name a word of the status column")
    for name, word in given.items():
        if name != "queued" and word == words.queued:
            raise ConfigurationError(
                f"--queued and --{name} are both {word!r}: a row would be wanted for ever; the"
                " queued word must mean nothing else"
            )
    for name in _FINAL:
        if given[name] == words.running:
            raise ConfigurationError(
                f"--running and --{name} are both {words.running!r}: nobody could tell whether the"
                " work has ended"
            )
    for name in _FINAL:
        if given[name] == words.snoozed:
            raise ConfigurationError(
                f"--snoozed and --{name} are both {words.snoozed!r}: nobody could tell whether the"
                " work has ended"
            )


async def check_words(
    connection: Connection, table: Table, status: TableColumn, words: Words
) -> None:
    """ConfigurationError if the column cannot hold one of them."""
    options: dict[str, str] = {}
    for name, word in asdict(words).items():
        options.setdefault(word, f"--{name}")
    for word, option in options.items():
        await _check_word(connection, table, status, word, option)


async def _check_word(
    connection: Connection, table: Table, status: TableColumn, word: str, option: str
) -> None:
    what = f"{status.quoted} of {table.head.full_name} cannot hold {word!r} ({option})"
    if status.labels and word not in status.labels:
        raise ConfigurationError(
            f"{what}: {status.below} has {', '.join(status.labels[:20])}; choose one of these,"
            f" or run ALTER TYPE {status.below} ADD VALUE {literal(word)}"
        )
    constant = literal(word)
    held = await hold_word(connection, status.type, constant)
    if isinstance(held, Unreadable):
        raise ConfigurationError(f"{what}: {held.reason}; choose another word")
    if word not in (held, held.rstrip(" ")):  # char(20) holds it with blanks behind
        room = f", which has room for {status.length} characters" if status.length else ""
        raise ConfigurationError(
            f"{what}{room}: it would say {held!r}; choose another word, or a wider type"
        )
    for check in tried_checks(table, status):
        passed = await pass_check(connection, status, check, constant)
        if passed is not True:
            why = f" ({passed.reason})" if isinstance(passed, Unreadable) else ""
            raise ConfigurationError(
                f"{what}: the constraint {readable(check.name)} refuses it{why}; choose another"
                f" word, or change the constraint: {check.expression}"
            )
    for reference in table.references:
        if reference.column != status.name or not reference.shows_all:
            continue
        if await is_referenced(connection, status, reference, constant) is False:
            raise ConfigurationError(
                f"{what}: it refers to {reference.to_table}, which has no such"
                f" {reference.to_column}; insert it there, or choose another word"
            )


def tried_checks(table: Table, status: TableColumn) -> list[TableCheck]:
    """The constraints that words are held against."""
    return [check for check in table.checks if check.columns == (status.name,)]
