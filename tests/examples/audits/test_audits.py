"""The example from end to end: the form inserts a row, and that is all it does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from examples.audits.site import sites
from hybrid_runner import Job
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.examples.audits.conftest import System, attach_as
from tests.examples.supabase import psql
from tests.support.waiting import differs_from, until, until_fetched

SITE = "https://shop.example"
LIVE = "SELECT count(*) FROM hybrid_runner.jobs"
OF_C = "SELECT count(*) FROM site_analysis.audits WHERE processing_worker_id = 'c'"


@asynccontextmanager
async def process(system: System, name: str, seconds: float = 0.01) -> AsyncIterator[WorkerProcess]:
    """One worker as a program, with a lease of 2 s."""
    async with worker(
        "tests.examples.audits.quick:app",
        cwd=ROOT,
        HYBRID_RUNNER_DSN=system.supabase.worker,
        WORKER_ID=name,
        AUDIT_SECONDS=str(seconds),
    ) as running:
        await running.says("listening on")
        yield running


async def test_psql_inserts_a_row_and_reads_the_report(system: System) -> None:
    """D1, D3, D7: by a login that may insert and look, and nothing else."""
    async with system.working("one"):
        audit = await asyncio.to_thread(
            psql,
            system.supabase.application,
            "INSERT INTO site_analysis.audits (requested_email, website_url)"
            f" VALUES ('ada@example.com', '{SITE}') RETURNING id",
            "site_form",
        )
        row = await system.until(UUID(audit), "completed")
    assert row["raw_data"].keys() == {"speed", "search", "access"}
    assert row["report_pdf_url"] == f"https://reports.example/{audit}.pdf"
    assert (row["processing_worker_id"], row["retry_count"], row["errors"]) == ("one", 0, None)
    assert (
        row["created_at"]
        <= row["processing_started_at"]
        <= row["last_heartbeat"]
        <= row["processing_completed_at"]
    )


async def test_a_running_audit_shows_who_works_on_it_since_when(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D3"""
    monkeypatch.setattr(sites, "look", 60.0)
    async with system.working("one"):
        audit = await system.form.ask("ada@example.com", SITE)
        row = await system.until(audit, "processing")
    assert row["processing_worker_id"] == "one"
    assert row["processing_started_at"] is not None
    assert row["last_heartbeat"] is not None
    assert row["retry_count"] == 0


async def test_rows_from_before_are_worked_on_when_the_table_is_attached(table: System) -> None:
    """D1: pending ones with no count of tries, and what the old worker left behind."""
    waiting = await table.form.ask("ada@example.com", SITE)
    stalled = await table.form.ask("grace@example.com", SITE)
    done = await table.form.ask("edsger@example.com", SITE)
    psql(
        table.supabase.owner,
        f"UPDATE site_analysis.audits SET status = 'stalled' WHERE id = '{stalled}'",
    )
    psql(
        table.supabase.owner,
        f"UPDATE site_analysis.audits SET status = 'failed' WHERE id = '{done}'",
    )
    await attach_as(table.supabase.owner)
    psql(
        table.supabase.owner,
        "UPDATE site_analysis.audits SET status = 'pending'"
        " WHERE status IN ('processing', 'stalled')",
    )
    async with table.working():
        await table.until(waiting, "completed", retry_count=0)
        await table.until(stalled, "completed", retry_count=0)
    row = await table.row(done)
    assert (row["status"], row["processing_worker_id"], row["retry_count"]) == (
        "failed",
        None,
        None,
    )


async def test_a_row_that_does_not_meet_the_condition_is_left_alone(system: System) -> None:
    """D1: and is worked on once it does."""
    async with system.working():
        empty = await system.form.ask("ada@example.com", "")
        audit = await system.form.ask("ada@example.com", SITE)
        await system.until(audit, "completed")
        assert (await system.row(empty))["status"] == "pending"
        psql(system.supabase.owner, f"UPDATE site_analysis.audits SET website_url = '{SITE}'")
        await system.until(empty, "completed")


async def test_a_site_that_does_not_answer_fails_after_three_attempts(
    system: System, no_pauses: None
) -> None:
    """D5, D8: each error is in the row."""
    async with system.working():
        audit = await system.form.ask("ada@example.com", "https://down.example")
        row = await system.until(audit, "failed")
    assert row["retry_count"] == 3
    assert [error["message"] for error in row["errors"]] == ["down.example does not answer"] * 3
    assert (row["raw_data"], row["report_pdf_url"]) == (None, None)


async def test_a_site_that_does_not_exist_fails_at_once(system: System) -> None:
    """D7"""
    async with system.working():
        audit = await system.form.ask("ada@example.com", "https://nowhere.example")
        row = await system.until(audit, "failed")
    assert row["retry_count"] == 1
    assert "there is no site https://nowhere.example" in row["errors"][-1]["message"]


async def test_customers_are_served_first(system: System) -> None:
    """D8: a priority by a rule over the row."""
    others = [await system.form.ask("ada@example.com", SITE) for _ in range(3)]
    customers = [await system.form.ask("eva@customer.example", SITE) for _ in range(3)]
    async with system.working(slots=1):
        for audit in others + customers:
            await system.until(audit, "completed")
    rows = await system.watch.fetch(
        "SELECT id FROM site_analysis.audits ORDER BY processing_started_at"
    )
    assert [row["id"] for row in rows] == customers + others


async def test_a_worker_that_is_stopped_hands_its_audits_back_as_pending(system: System) -> None:
    """D6: uncharged, and nothing of it is left in the row."""
    async with process(system, "stopped", seconds=60) as stopped:
        audit = await system.form.ask("ada@example.com", SITE)
        await system.until(audit, "processing")
        assert await stopped.ends(signal.SIGTERM) == 0
    row = await system.row(audit)
    assert (row["status"], row["retry_count"], row["processing_worker_id"]) == ("pending", 0, None)
    assert (row["processing_started_at"], row["last_heartbeat"]) == (None, None)
    async with process(system, "next"):
        assert (await system.until(audit, "completed"))["processing_worker_id"] == "next"


async def test_a_worker_that_says_nothing_any_more_loses_its_audit_to_another(
    system: System,
) -> None:
    """D5, A4: back to pending, charged; when it wakes up it changes nothing."""
    async with process(system, "frozen", seconds=60) as frozen:
        audit = await system.form.ask("ada@example.com", SITE)
        await system.until(audit, "processing")
        frozen.process.send_signal(signal.SIGSTOP)
        async with process(system, "other"):
            row = await system.until(audit, "completed", retry_count=1)
            assert row["processing_worker_id"] == "other"
            frozen.process.send_signal(signal.SIGCONT)
            await frozen.says("no longer")
    assert await system.row(audit) == row


async def test_an_audit_that_kills_each_of_its_workers_fails_after_three(system: System) -> None:
    """D5: each life of the worker puts back what the one before it left, charged; a fourth one
    says that it is enough.
    """
    audit = await system.form.ask("ada@example.com", SITE)
    for deaths in range(3):
        async with process(system, "mortal", seconds=60) as mortal:
            await system.until(audit, "processing", retry_count=deaths)
            await mortal.ends(signal.SIGKILL)
    async with process(system, "mortal"):
        row = await system.until(audit, "failed")
    assert row["retry_count"] == 3
    assert len(row["errors"]) == 3


async def test_three_workers_share_the_audits_while_one_is_killed(system: System) -> None:
    """A4, D5: each audit ends once, and none is left in processing."""
    async with (
        process(system, "a", 0.05),
        process(system, "b", 0.05),
        process(system, "c", 0.05) as doomed,
    ):
        audits = [await system.form.ask("ada@example.com", SITE) for _ in range(60)]
        while not await system.watch.fetchval(OF_C):  # the others may be faster
            audits.append(await system.form.ask("ada@example.com", SITE))
        doomed.process.kill()
        for audit in audits:
            await system.until(audit, "completed")
    await until_fetched(system.watch, LIVE, 0)
    ends = await system.watch.fetch(
        "SELECT row_key, count(*) AS ends FROM hybrid_runner.archive GROUP BY row_key"
    )
    assert {row["row_key"]: row["ends"] for row in ends} == {str(audit): 1 for audit in audits}


async def test_the_row_of_a_running_audit_shows_that_its_worker_lives(system: System) -> None:
    """D4"""
    async with process(system, "one", seconds=60):
        audit = await system.form.ask("ada@example.com", SITE)
        first = (await system.until(audit, "processing"))["last_heartbeat"]

        async def heartbeat() -> object:
            return (await system.row(audit))["last_heartbeat"]

        await until(heartbeat, differs_from(first))


async def test_the_address_of_the_report_and_the_end_of_its_job_are_one_transaction(
    system: System, no_pauses: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 6: the handler writes the row, and completes its job there."""
    complete, seen = Job.complete, []

    async def failing(job: Job[Any], *arguments: Any, **options: Any) -> None:
        await complete(job, *arguments, **options)
        if job.attempt == 1:
            raise RuntimeError("after both, before the commit")

    async def look(_: object, url: str) -> dict[str, int]:
        seen.append(
            psql(system.supabase.superuser, "SELECT report_pdf_url FROM site_analysis.audits")
        )
        return {"speed": 1}

    monkeypatch.setattr(Job, "complete", failing)
    monkeypatch.setattr(type(sites), "audit", look)
    async with system.working():
        audit = await system.form.ask("ada@example.com", SITE)
        row = await system.until(audit, "completed")
    assert seen == [""] * 2
    assert (row["raw_data"], row["retry_count"]) == ({"speed": 1}, 1)
    assert row["report_pdf_url"] is not None
