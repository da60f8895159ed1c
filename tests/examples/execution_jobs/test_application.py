"""The application alone, without hybrid_runner: what it does with its own tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from examples.execution_jobs.application import TABLES, Application
from tests.examples.supabase import Supabase, psql

ADA, BOB = UUID(int=1), UUID(int=2)
STEPS = ["open the page", "type ${name}"]
ROWS = [{"name": "ada"}, {"name": "grace"}]


@pytest.fixture
async def application(supabase: Supabase) -> AsyncIterator[Application]:
    """By a login that has no rights of its own."""
    psql(supabase.owner, TABLES)
    made = Application(lambda: supabase.application)
    yield made
    await made.close()


async def test_a_user_sees_and_changes_what_is_his_own(application: Application) -> None:
    recording = await application.record(ADA, "Sign in", STEPS)
    execution = await application.start(ADA, recording, ROWS)
    [seen] = await application.executions(ADA)
    assert (seen["id"], seen["status"], seen["total_rows"]) == (execution, "queued", 2)
    assert await application.executions(BOB) == []
    assert not await application.cancel(BOB, execution)
    await application.delete_recording(BOB, recording)
    assert await application.cancel(ADA, execution)
    assert not await application.cancel(ADA, execution)
    assert await application.again(ADA, execution)


async def test_who_has_read_an_older_version_changes_nothing(application: Application) -> None:
    """A5, of the application's own column."""
    execution = await application.start(ADA, await application.record(ADA, "x", STEPS), ROWS)
    assert await application.configure(ADA, execution, 1, {"headless": True})
    assert not await application.configure(ADA, execution, 1, {"headless": False})
    assert await application.configure(ADA, execution, 2, {"headless": False})


async def test_the_last_result_completes_its_execution(
    application: Application, supabase: Supabase
) -> None:
    execution = await application.start(ADA, await application.record(ADA, "x", STEPS), ROWS)
    psql(supabase.owner, "UPDATE browser_tests.execution_jobs SET status = 'running'")
    for number in (1, 2):
        psql(
            supabase.application,
            "INSERT INTO browser_tests.execution_results VALUES"
            f" ('{execution}', {number}, {number} = 1, 'x')",
            role="service_role",
        )
    [seen] = await application.executions(ADA)
    assert (seen["status"], seen["completed_rows"], seen["not_passed"]) == ("completed", 2, 1)


def test_the_tables_can_be_made_twice(supabase: Supabase) -> None:
    psql(supabase.owner, TABLES)
    psql(supabase.owner, TABLES)


def test_nothing_in_it_knows_of_jobs() -> None:
    assert "hybrid_runner" not in TABLES
