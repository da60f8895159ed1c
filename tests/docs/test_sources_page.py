"""docs/sources.md and docs/moving-to-sources.md do what they say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from hybrid_runner import Runner
from hybrid_runner.cli import make_parser
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import environment, worker
from tests.docs.blocks import ROOT, Block, blocks
from tests.docs.cli_page import commands
from tests.docs.test_pages import load
from tests.support.waiting import until_fetched

SOURCES, MOVING = "docs/sources.md", "docs/moving-to-sources.md"


def command(block: Block) -> list[str]:
    """The one command of a block."""
    [line] = block.text.splitlines()
    program, *arguments = shlex.split(line)
    assert program == "hybrid-runner"
    return arguments


def run(arguments: list[str], dsn: str, folder: Path) -> str:
    """As a reader runs it; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "hybrid_runner", *arguments],
        cwd=folder,
        env=environment(HYBRID_RUNNER_DSN=dsn),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def chapter(page: str, title: str) -> str:
    """What stands below a heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_page_is_a_module() -> None:
    module = load("sources_page", "".join(block.text for block in blocks(SOURCES, "python")))
    del sys.modules["sources_page"]
    assert {kind.name: kind.queue for kind in module.app.registry} == {
        "audit": "audits",
        "report": "audits",
    }


async def test_step_by_step_leads_from_a_table_to_a_row_that_completed(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """D1, D3, D7: and detach leaves neither triggers nor functions."""
    handler, *_ = blocks(SOURCES, "python")
    (tmp_path / "tasks.py").write_text(handler.text, encoding="utf-8")
    create, insert_and_look = (block.text for block in blocks(SOURCES, "sql"))
    insert, look, _ = insert_and_look.split(";")
    check, guess, attach, work, sources, _, detach = map(command, blocks(SOURCES, "sh"))
    assert check == [*attach, "--check"]
    await database.execute(create)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('before')")
    assert run(check, dsn, tmp_path) in run(guess, dsn, tmp_path)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.sources") == 0
    run(attach, dsn, tmp_path)
    async with worker(*work[1:], cwd=tmp_path, HYBRID_RUNNER_DSN=dsn) as running:
        await running.says("listening on")
        await database.execute(insert)
        await until_fetched(
            database, "SELECT count(*) FROM public.audits WHERE status = 'completed'", 2
        )
        assert "public.audits" in run(sources, dsn, tmp_path)
        assert {json.loads(row["raw_data"])["score"] for row in await database.fetch(look)} == {
            6,
            19,
        }
        run(detach, dsn, tmp_path)
        await database.execute(insert)
    made = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'public.audits'::regclass"
    assert await database.fetchval(made) == 0
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_its_code_attaches_and_its_second_handler_completes_a_row_with_its_job(
    dsn: str, database: Connection
) -> None:
    """Section 6: the handler's own transaction."""
    module = load("sources_page", "".join(block.text for block in blocks(SOURCES, "python")))
    del sys.modules["sources_page"]
    create, *_ = blocks(SOURCES, "sql")
    await database.execute(create.text)
    module.app.use(dsn=dsn)
    async with module.app:
        await module.attach()
        await module.app.detach("public.audits")
        await module.app.attach(
            "public.audits", kind=module.report, columns={"result": "raw_data"}, guess=True
        )
        async with module.app.worker():
            await database.execute("INSERT INTO public.audits (website_url) VALUES ('ABC')")
            done = "SELECT website_url || raw_data FROM public.audits WHERE status = 'completed'"
            await until_fetched(database, done, 'abc{"score": 93}')


async def test_rules_for_priority_and_time_pass_their_check(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """D8"""
    create, *_ = blocks(SOURCES, "sql")
    await database.execute(create.text)
    *_, rules, _ = map(command, blocks(SOURCES, "sh"))
    assert "--run-at" in rules
    assert "nothing was changed" in run(rules, dsn, tmp_path)


def test_the_table_of_options_has_those_of_the_command() -> None:
    [parser] = [p for p in commands(make_parser()) if p.prog.endswith(" attach")]
    there = {
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    common = {"--help", "--dsn", "--json", "--log-level", "--log-format"}
    told = {
        option
        for row in chapter(SOURCES, "Options").splitlines()
        if row.startswith("| `")
        for option in re.findall(r"`(--[a-z-]+)`", row.split("|")[1])
    }
    assert told == there - common


async def test_the_way_from_a_loop_of_ones_own_loses_no_row(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """D1: rows that wait, and those that a dead worker left behind."""
    create, update = (block.text for block in blocks(MOVING, "sql"))
    [attach] = (command(block) for block in blocks(MOVING, "sh"))
    await database.execute(create)
    await database.execute(update)
    run(attach, dsn, tmp_path)
    app = Runner(dsn)
    done = []

    @app.job("my-task")
    async def task(row: dict[str, Any]) -> None:
        done.append(row["what"])

    async with app, app.worker():
        await until_fetched(
            database, "SELECT count(*) FROM public.my_tasks WHERE status = 'completed'", 3
        )
    assert sorted(done) == ["its worker died", "new"]
    run(["detach", "public.my_tasks"], dsn, tmp_path)
