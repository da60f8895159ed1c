"""docs/schedules.md: its Python is one module, its commands and its SQL do what they say."""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid_runner import Runner
from hybrid_runner.cli import make_parser
from hybrid_runner.handlers.schedule_options import option_texts
from hybrid_runner.model.schedules import DeclaredSchedule
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import worker
from tests.docs.blocks import ROOT, blocks
from tests.docs.test_pages import load
from tests.docs.test_sources_page import command, run
from tests.support.waiting import until_fetched

PAGE = "docs/schedules.md"
_RAN = "SELECT result #>> '{}' FROM hybrid_runner.archive WHERE schedule = 'nightly'"
_PULSED = """
SELECT extract(second FROM tick)::int % 10 = 0 FROM hybrid_runner.archive WHERE schedule = 'pulse'
LIMIT 1
"""
_STORED = "SELECT name FROM hybrid_runner.schedules ORDER BY name"


def app_of_the_page() -> Runner:
    module = load("schedules_page", "".join(block.text for block in blocks(PAGE, "python")))
    del sys.modules["schedules_page"]
    app: Runner = module.app
    return app


def test_the_page_is_a_module() -> None:
    app = app_of_the_page()
    assert [schedule.name for schedule in app.registry.schedules] == [
        "accounts",
        "nightly",
        "payroll",
        "prices",
        "pulse",
    ]
    assert app.registry.schedules[1] == DeclaredSchedule(
        "nightly", "report", '{"kind":"daily"}', "30 2 * * *", timezone="Europe/Berlin"
    )


def test_the_page_has_every_option_with_its_text() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    wanted = [f"| `{name}` | {said} |" for name, said in option_texts().items()]
    assert [row for row in rows if row in wanted] == wanted


async def test_step_by_step_leads_to_schedules_that_fire(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    tasks, *_ = blocks(PAGE, "python")
    (tmp_path / "tasks.py").write_text(tasks.text, encoding="utf-8")
    work, listed, shown, now = map(command, blocks(PAGE, "sh"))
    for each in (work, listed, shown, now):
        make_parser(each).parse(each)
    async with worker(*work[1:], cwd=tmp_path, HYBRID_RUNNER_DSN=dsn) as running:
        await running.says("listening on")
        stored = await database.fetch(_STORED)
        assert [row["name"] for row in stored] == ["nightly", "pulse"]
        assert "Europe/Berlin" in run(listed, dsn, tmp_path)
        assert run(shown, dsn, tmp_path).split("next ticks")[1].count("02:30:00+0") == 5
        run(now, dsn, tmp_path)
        await until_fetched(database, _RAN, "the daily report of None")
        await until_fetched(database, _PULSED, True)
        await running.ends()


async def test_what_the_page_says_in_sql_is_so(database: Connection) -> None:
    said = [line for block in blocks(PAGE, "text") for line in block.text.splitlines()]
    answered = []
    for block in blocks(PAGE, "sql"):
        for statement in filter(str.strip, block.text.split(";\n")):
            rows = await database.fetch(statement)
            if "AT TIME ZONE" in statement:
                answered += [str(row[0]) for row in rows]
    assert answered == said[: len(answered)]
    assert len(answered) == 6
    assert [
        row["name"] for row in await database.fetch("SELECT name FROM hybrid_runner.schedules")
    ] == ["weekly"]


async def test_the_questions_and_changes_of_the_page_run(dsn: str) -> None:
    module = load("schedules_page", "".join(block.text for block in blocks(PAGE, "python")))
    del sys.modules["schedules_page"]
    module.app.use(dsn)
    async with module.app as app, app.worker():
        await module.look()
        await module.change()
        names = [schedule.name for schedule in await app.schedules()]
    assert "digest" not in names
    assert "nightly" in names
