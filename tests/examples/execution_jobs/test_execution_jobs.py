"""The example from end to end: the application knows its own tables and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from examples.execution_jobs.browser import BrowserCrashed, browser
from tests.examples.execution_jobs.conftest import ADA, System
from tests.examples.supabase import psql
from tests.support.waiting import until_fetched

RESULTS = "SELECT count(*) FROM browser_tests.execution_results"


async def test_what_a_user_inserts_is_worked_on_and_its_row_shows_it(system: System) -> None:
    """D1, D3, D7, A6: by a user with a policy, whose login has no right in hybrid_runner."""
    async with system.working("one"):
        execution = await system.start("ada", "grace")
        row = await system.until(execution, "completed")
        await system.ended("completed")
    row = await system.row(execution)
    assert (row["worker_id"], row["completed_rows"], row["error_message"]) == ("one", 2, None)
    assert row["created_at"] <= row["started_at"] <= row["completed_at"]
    assert not await system.watch.fetchval(
        "SELECT has_schema_privilege('authenticated', 'hybrid_runner', 'USAGE')"
    )


async def test_psql_inserts_a_row_and_reads_how_it_ended(system: System) -> None:
    """D1: any client."""
    recording = psql(
        system.supabase.application,
        "INSERT INTO browser_tests.recordings (user_id, name, steps)"
        " VALUES (gen_random_uuid(), 'By hand', '[\"look\"]') RETURNING id",
        role="service_role",
    )
    async with system.working():
        await asyncio.to_thread(
            psql,
            system.supabase.application,
            "INSERT INTO browser_tests.execution_jobs (recording_id, csv_data, total_rows)"
            f" VALUES ('{recording}', '[{{\"a\": \"1\"}}]', 1)",
            role="service_role",
        )
        await system.ended("completed")
    said = psql(
        system.supabase.application,
        "SELECT status, worker_id, completed_rows FROM browser_tests.execution_jobs",
        role="service_role",
    )
    assert said == "completed|one|1"


async def test_an_execution_that_completes_itself_is_left_as_it_is(system: System) -> None:
    """Section 6: the application sets a final word while the job runs."""
    async with system.working():
        execution = await system.start("ada")
        by_itself = await system.until(execution, "completed")
        await system.ended("completed")
    after = await system.row(execution)
    assert after["completed_at"] == by_itself["completed_at"]
    assert after["updated_at"] == by_itself["updated_at"]
    assert await system.watch.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0


async def test_an_execution_without_rows_is_completed_by_the_end_of_its_job(
    system: System,
) -> None:
    """D7"""
    async with system.working():
        execution = await system.start()
        row = await system.until(execution, "completed")
    assert row["completed_at"] is not None


async def test_a_user_who_cancels_ends_a_running_execution(
    system: System, slow: Callable[[], None]
) -> None:
    """B6 and section 6: the cancelled word reaches the job, and the row keeps it."""
    async with system.working():
        execution = await system.start("ada")
        await system.until(execution, "running")
        assert await system.application.cancel(ADA, execution)
        await system.ended("cancelled")
    assert (await system.row(execution))["status"] == "cancelled"
    assert await system.watch.fetchval(RESULTS) == 0


async def test_a_user_who_cancels_ends_a_waiting_execution(
    system: System, slow: Callable[[], None]
) -> None:
    """Section 6: while the only slot is taken."""
    async with system.working(slots=1):
        first = await system.start("ada")
        await system.until(first, "running")
        second = await system.start("grace")
        assert await system.application.cancel(ADA, second)
        await system.ended("running", "cancelled")
        assert (await system.row(second))["status"] == "cancelled"
        assert await system.application.cancel(ADA, first)
        await system.ended("cancelled", "cancelled")


async def test_an_execution_that_has_ended_can_be_asked_for_again(system: System) -> None:
    """Section 6: a row that becomes wanted again gets a new job."""
    async with system.working():
        execution = await system.start("ada", "grace")
        await system.ended("completed")
        assert await system.application.again(ADA, execution)
        await system.ended("completed", "completed")
    assert (await system.row(execution))["completed_rows"] == 2
    assert await system.watch.fetchval(RESULTS) == 2


async def test_a_recording_that_is_deleted_ends_its_executions(
    system: System, slow: Callable[[], None]
) -> None:
    """Section 6: cascade deletes of a running and of a waiting row."""
    async with system.working(slots=1):
        running = await system.start("ada")
        await system.until(running, "running")
        recording = (await system.row(running))["recording_id"]
        await system.application.start(ADA, recording, [{"name": "grace"}])
        await system.application.delete_recording(ADA, recording)
        await system.ended("cancelled", "cancelled")
    assert await system.watch.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_a_browser_that_crashes_each_time_fails_after_three_attempts(
    system: System, no_pauses: None
) -> None:
    """D5, D7, D8: what was done stays, and the row says why."""
    async with system.working():
        execution = await system.start("ada", "crash", "grace")
        row = await system.until(execution, "failed")
    assert row["error_message"] == "the browser crashed at 'type crash'"
    assert (row["completed_rows"], row["total_rows"]) == (1, 3)
    [job] = await system.jobs()
    assert (job["state"], job["attempt"]) == ("failed", 3)


async def test_an_attempt_goes_on_where_the_one_before_it_stopped(
    system: System, no_pauses: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B16: no row of the file is played twice."""
    played = []

    async def play(steps: object, values: dict[str, str]) -> None:
        played.append(values["name"])
        if played == ["ada", "grace"]:
            raise BrowserCrashed("once")

    monkeypatch.setattr(browser, "play", play)
    async with system.working():
        execution = await system.start("ada", "grace", "edsger")
        row = await system.until(execution, "completed")
        await system.ended("completed")
    assert played == ["ada", "grace", "grace", "edsger"]
    assert (row["completed_rows"], row["error_message"]) == (3, None)


async def test_a_worker_that_is_stopped_hands_its_execution_back(
    system: System, slow: Callable[[], None]
) -> None:
    """D6: the row says queued and nothing of the worker; the next one does the rest."""
    async with system.working("one"):
        execution = await system.start("ada")
        await system.until(execution, "running")
    row = await system.row(execution)
    assert (row["status"], row["worker_id"], row["started_at"]) == ("queued", None, None)
    slow()
    async with system.working("two"):
        await system.ended("completed")
    row = await system.row(execution)
    assert (row["status"], row["worker_id"]) == ("completed", "two")


async def test_three_workers_share_the_executions_and_each_is_done_once(system: System) -> None:
    """A4"""
    names = ("one", "two", "three")
    executions = [await system.start("ada", "grace") for _ in range(30)]
    async with system.working(*names, slots=3):
        for execution in executions:
            await system.until(execution, "completed")
        await system.ended(*["completed"] * 30)
    rows = [await system.row(execution) for execution in executions]
    assert {row["worker_id"] for row in rows} <= set(names)
    assert {row["completed_rows"] for row in rows} == {2}
    assert {job["attempt"] for job in await system.jobs()} == {1}
    assert await system.watch.fetchval(RESULTS) == 60


async def test_a_version_that_a_user_has_read_outlives_what_workers_write(
    system: System, slow: Callable[[], None]
) -> None:
    """A5: the column is the application's, and workers write only those that were named."""
    async with system.working():
        execution = await system.start("ada")
        before = await system.row(execution)
        await system.until(execution, "running")
        assert await system.application.configure(ADA, execution, before["version"], {"fast": True})
        assert not await system.application.configure(ADA, execution, before["version"], {})
        assert await system.application.cancel(ADA, execution)
        await system.ended("cancelled")


async def test_a_form_that_holds_the_row_holds_up_nobody(
    system: System, slow: Callable[[], None]
) -> None:
    """Section 6: a row that is locked while its job begins and ends is written later."""
    execution = await system.start("ada")
    async with system.application.user(ADA) as form:
        await form.execute(
            "UPDATE browser_tests.execution_jobs SET config = '{\"a\": 1}' WHERE id = $1", execution
        )
        async with system.working():
            other = await system.start()
            await system.until(other, "completed")
            await until_fetched(
                system.watch,
                "SELECT count(*) FROM hybrid_runner.late_rows WHERE row_key = $1",
                1,
                str(execution),
            )
            assert (await system.row(execution))["status"] == "queued"
    async with system.working("two"):
        row = await system.until(execution, "running")
        assert row["config"] == '{"a": 1}'
        assert await system.application.cancel(ADA, execution)
        await until_fetched(system.watch, "SELECT count(*) FROM hybrid_runner.jobs", 0)
