"""The script for psql that attaches a table as `attach` would."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hybrid_runner.attach.quoting import literal
from hybrid_runner.model.source_views import SourceRecord
from hybrid_runner.storage.queries import query, script

_HEAD = """\
-- Attaches {table} as source {number}. Run it with psql, as a role that may act as {owner},
-- who owns the table, and as {runner_owner}, who owns hybrid_runner.
{notes}\\set ON_ERROR_STOP on
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL standard_conforming_strings = on;
SET LOCAL client_min_messages = warning;
"""
_STILL_OURS = """\
DO $still_ours$ BEGIN
    IF NOT EXISTS (
        SELECT FROM hybrid_runner.sources
        WHERE id = {number} AND relation = {table}::regclass AND kind = {kind}
    ) THEN
        RAISE EXCEPTION 'somebody else has attached the table meanwhile: print this script again';
    END IF;
END $still_ours$"""
_BACKFILL = """\

-- Jobs for the rows that are wanted already, some thousand at a time; may be run again.
DO $backfill$
DECLARE
    last integer := ({blocks});
BEGIN
    FOR place IN 0 .. last BY {step} LOOP
        PERFORM hybrid_runner.want_rows({number}, {most_in_blocks}, place, {step});
        COMMIT;
    END LOOP;
    WHILE hybrid_runner.want_rows({number}, {rows}) = {rows} LOOP
        COMMIT;
    END LOOP;
END $backfill$;
"""
_PARAMETER = re.compile(r"\$(\d+)")


class Batches(NamedTuple):
    """How much of a backfill is done in one transaction."""

    rows: int
    blocks: int
    most_in_blocks: int


def attaching_script(
    record: SourceRecord,
    runner_owner: str,
    statements: Sequence[str],
    notes: Sequence[str],
    backfill: Batches | None,
) -> str:
    """The whole script."""
    named = literal(record.relation)
    values = [str(record.number), *map(_literal, record[1:])]
    steps = [
        script("begin").strip().rstrip(";"),
        with_literals(query("record_source"), values),
        _STILL_OURS.format(
            number=record.number,
            table=named,
            kind=literal(record.kind),
        ),
        *statements,
    ]
    head = _HEAD.format(
        table=_one_line(record.relation),
        number=record.number,
        owner=_one_line(record.owner),
        runner_owner=_one_line(runner_owner),
        notes="".join(f"-- note: {_one_line(note)}\n" for note in notes),
    )
    body = "".join(f"{step.strip().rstrip(';')};\n" for step in steps)
    more = "" if backfill is None else _backfill(record.number, backfill)
    return f"{head}{body}COMMIT;\n{more}"


def _backfill(number: int, batches: Batches) -> str:
    return _BACKFILL.format(
        number=number,
        blocks=with_literals(query("table_blocks"), [str(number)]),
        rows=batches.rows,
        step=batches.blocks,
        most_in_blocks=batches.most_in_blocks,
    )


def with_literals(sql: str, values: Sequence[str]) -> str:
    """A query with its values in place of its parameters, without its header."""
    lines = [line for line in sql.splitlines() if not line.startswith("--")]
    return _PARAMETER.sub(lambda found: values[int(found[1]) - 1], "\n".join(lines))


def _literal(value: str | bool | None) -> str:  # noqa: FBT001  # a value of any kind
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return literal(value)


def _one_line(text: str) -> str:
    return " ".join(text.split())
