"""docs/keys.md: its blocks run, and its table is the one that is tested."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT, blocks
from tests.docs.test_pages import run
from tests.storage.test_key_answers import ANSWERS, HOLDERS, has_ended, nobody

PAGE = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")


async def test_the_keys_page_runs(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_RUNNER_DSN", dsn)
    await database.execute("SET search_path = public")
    names: dict[str, Any] = {"__name__": "keys_page"}
    for block in blocks("docs/keys.md", "python", "sql"):
        if block.language == "sql":
            await database.execute(block.text)
        else:
            code = compile(block.text, "keys.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            await run(code, names)
    rows = await database.fetch(
        "SELECT kind, key, CASE kind WHEN 'index' THEN jsonb_array_length(payload) END"
        " FROM hybrid_runner.jobs"
        " WHERE key IN ('reindex:20', 'reindex:21') OR kind = 'index' ORDER BY id"
    )
    # each document once for its INSERT and its two UPDATEs; 5 items of Python, 2 of the trigger
    assert [tuple(row) for row in rows] == [
        ("index", "index", 7),
        ("reindex", "reindex:20", None),
        ("reindex", "reindex:21", None),
    ]


def test_the_table_says_what_every_way_answers() -> None:
    said = {
        row[0].partition(" ")[0].strip("`"): [
            "error" if cell == "an error" else cell.strip("`") for cell in row[1:]
        ]
        for line in re.findall(rf"^\| `(?:{'|'.join(ANSWERS)})`.*\|$", PAGE, re.MULTILINE)
        if (row := [cell.strip() for cell in line.strip("|").split("|")])
    }
    shown = [n for n, holder in enumerate(HOLDERS) if holder not in (has_ended, HOLDERS[-1])]
    assert said == {word: [answers[n] for n in shown] for word, answers in ANSWERS.items()}
    ended, free = HOLDERS.index(has_ended), HOLDERS.index(nobody)
    assert all(answers[ended] == answers[free] for answers in ANSWERS.values())
