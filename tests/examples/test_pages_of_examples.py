"""The pages of the examples do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.audits.app import app as audits
from examples.audits.app import attach as attach_audits
from examples.audits.form import create_table
from examples.execution_jobs.app import app as executions
from examples.execution_jobs.app import attach as attach_executions
from examples.execution_jobs.application import TABLES
from hybrid_runner import Runner
from tests.docs.blocks import blocks
from tests.docs.test_sources_page import command, run
from tests.examples.supabase import Supabase, psql


async def attach(name: str, supabase: Supabase) -> Runner:
    """Its tables are made and attached."""
    if name == "audits":
        app, by_code = audits, attach_audits
        await create_table(supabase.owner)
    else:
        app, by_code = executions, attach_executions
        psql(supabase.owner, TABLES)
    app.use(dsn=supabase.owner)
    async with app:
        await by_code()
    return app


@pytest.mark.parametrize("name", ["audits", "execution_jobs"])
async def test_the_command_on_the_page_does_what_the_code_does(
    name: str, supabase: Supabase, tmp_path: Path
) -> None:
    await attach(name, supabase)
    asked = "SELECT kind, queue, definition FROM hybrid_runner.sources"
    by_code = psql(supabase.owner, asked)
    [line] = [
        command(block)
        for block in blocks(f"examples/{name}/README.md", "sh")
        if " attach " in block.text
    ]
    run(line, supabase.owner, tmp_path)
    assert psql(supabase.owner, asked) == by_code


@pytest.mark.parametrize(
    ("name", "made"), [("audits", ["analyse-site"]), ("execution_jobs", ["execute-recording"])]
)
async def test_rows_that_are_inserted_as_the_page_says_become_jobs(
    name: str, made: list[str], supabase: Supabase
) -> None:
    """D1: by psql."""
    await attach(name, supabase)
    for block in blocks(f"examples/{name}/README.md", "sql"):
        psql(supabase.owner, block.text)
    assert psql(supabase.owner, "SELECT kind FROM hybrid_runner.jobs").splitlines() == made
