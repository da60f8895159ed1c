"""An outcome that Postgres refuses, whatever for, waits alone: real triggers that say no."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import Cancel, Fail, Job, RetryPolicy, Runner, State, Worker
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.pages.health import checks_of
from tests.support import inside
from tests.support.waiting import until
from tests.support.working import outcome, runner, working

pytestmark = pytest.mark.usefixtures("quick_tries")

AT_ONCE = RetryPolicy(base=timedelta(0), cap=timedelta(milliseconds=20))
ASCII = "!~ '[^\\x01-\\x7f]'"


@pytest.fixture
def quick_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    inside.make_outages_short(monkeypatch, 0.02, 0.1, 2)
    inside.make_refusals_short(monkeypatch, 0.02, 0.1)


async def refuse(
    database: Connection,
    when: str = "NEW.kind = 'bad'",
    sqlstate: str = "P0001",
    *,
    before: str = "INSERT ON hybrid_runner.archive",
) -> None:
    """From now on somebody's trigger says no to what is archived."""
    await database.execute(
        f"""
        CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF {when} THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '{sqlstate}'; END IF;
            RETURN NEW;
        END
        $$;
        CREATE TRIGGER refuse BEFORE {before} FOR EACH ROW EXECUTE FUNCTION public.refuse()
        """
    )


async def check(database: Connection, table: str, what: str) -> None:
    """From now on Postgres takes only such values."""
    await database.execute(
        f"ALTER TABLE hybrid_runner.{table} ADD CONSTRAINT {table}_not_this_one CHECK ({what})"
    )


async def allow(database: Connection) -> None:
    await database.execute("DROP FUNCTION public.refuse() CASCADE")


def said(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if getattr(r, "event", "") == event]


@asynccontextmanager
async def a_worker(dsn: str, **settings: Any) -> AsyncIterator[tuple[Runner, Worker]]:
    app = runner(dsn, **settings)

    @app.job("bad", max_attempts=2, retry=AT_ONCE)
    async def bad(payload: dict[str, str]) -> Any:
        match payload.get("says"):
            case None:
                return "done"
            case text:
                raise ValueError(text)

    @app.job("good")
    async def good(_: Any) -> str:
        return "ok"

    @app.job("cancel")
    async def cancel(_: Any) -> Cancel:
        return Cancel("a snowman: \u2603")

    @app.job("fail")
    async def fail(_: Any) -> Fail:
        return Fail("a snowman: \u2603")

    @app.job("retry", max_attempts=2, retry=AT_ONCE)
    async def retry(_: Any) -> None:
        raise ValueError("a snowman: \u2603")

    @app.job("snowman")
    async def snowman(_: Any) -> str:
        return "\u2603"

    async with working(app) as worker:
        yield app, worker


@pytest.mark.parametrize(
    "sqlstate",
    [
        *("P0001", "XX001", "42501", "42P01", "57014", "40P01", "53200", "55P03", "0A000"),
        *("22012", "22023", "22P05", "23505", "23514", "54000"),
    ],
)
async def test_what_a_trigger_refuses_holds_up_nothing_else_and_ends_when_it_is_allowed(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture, sqlstate: str
) -> None:
    """A trigger that raises, a value that is damaged, a right that is missing, one that takes too
    long, a value of the trigger's own.
    """
    await refuse(database, sqlstate=sqlstate)
    async with a_worker(dsn) as (app, worker):
        refused = [await app.enqueue("bad", {}) for _ in range(3)]
        for _ in range(5):
            assert (await outcome(app, "good")).result == "ok"
        await until(lambda: worker.status().pending_settlements == 3)
        [check] = [c for c in checks_of(worker.status()) if c.name == "settling"]
        assert check.severity == "warning"
        assert "not this one" in check.reason
        assert "bad" in check.reason
        assert any("not this one" in line for line in said(caplog, "job.outcome_set_aside"))
        await allow(database)
        assert [await handle.wait(120) for handle in refused] == ["done"] * 3
        await worker.idle()
        [check] = [c for c in checks_of(worker.status()) if c.name == "settling"]
        assert check.severity == "ok"
        assert worker.status().stale == 0


async def test_jobs_that_are_put_back_are_written_beside_one_that_is_refused(
    dsn: str, database: Connection
) -> None:
    await refuse(
        database,
        "NEW.kind = 'bad' AND NEW.state = 'queued'",
        before="UPDATE ON hybrid_runner.jobs",
    )
    async with a_worker(dsn) as (app, worker):
        refused = await app.enqueue("bad", {"says": "no"})
        for _ in range(3):
            assert (await outcome(app, "retry")).attempt == 2
        await until(lambda: worker.status().pending_settlements == 1)
        await allow(database)
        job = await until(refused.get, lambda job: job.state is State.FAILED)
        assert len(job.errors) == 2


async def test_a_text_that_postgres_refuses_is_written_in_ascii(
    dsn: str, database: Connection
) -> None:
    await check(database, "archive", f"errors::text {ASCII} AND coalesce(result::text, '') {ASCII}")
    await check(database, "jobs", f"errors::text {ASCII}")
    async with a_worker(dsn) as (app, _):
        cancelled, failed = await outcome(app, "cancel"), await outcome(app, "fail")
        assert cancelled.state is State.CANCELLED
        assert failed.state is State.FAILED
        for job in (cancelled, failed):
            assert job.errors[-1]["message"] == "a snowman: \\u2603"
        retried = await outcome(app, "retry")
        assert [e["message"] for e in retried.errors] == ["a snowman: \\u2603"] * 2
        assert [e["type"] for e in retried.errors] == ["ValueError"] * 2
        result = await outcome(app, "snowman")
        assert (result.state, result.errors[-1]["type"]) == (State.FAILED, "ResultRefused")
        assert "not this one" in result.errors[-1]["message"]


async def test_whatever_is_said_of_it_a_failure_is_written(dsn: str, database: Connection) -> None:
    """Its text may be refused in ASCII as well."""
    await check(database, "archive", "errors::text NOT LIKE '%forbidden%'")
    async with a_worker(dsn) as (app, _):
        job = await outcome(app, "bad", {"says": "forbidden"}, max_attempts=1)
        assert (job.state, job.errors[-1]["type"]) == (State.FAILED, "OutcomeRefused")


async def test_a_stop_says_which_outcomes_postgres_refuses_and_waits_for_none_of_them(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await refuse(database)
    async with a_worker(dsn, grace=30) as (app, worker):
        handle = await app.enqueue("bad", {})
        await until(lambda: worker.status().pending_settlements == 1)
        await until(lambda: said(caplog, "job.outcome_set_aside"))
    [line] = said(caplog, "worker.outcomes_refused")
    assert f"job {handle.id} (bad)" in line
    assert "not this one" in line
    assert not said(caplog, "worker.outcomes_unwritten")


async def test_what_was_refused_is_tried_once_more_at_the_stop(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.make_refusals_short(monkeypatch, 600, 600)
    await refuse(database)
    async with a_worker(dsn) as (app, worker):
        handle = await app.enqueue("bad", {})
        await until(lambda: worker.status().refused_settlements == 1)
        await allow(database)
    state = await database.fetchval(
        "SELECT state FROM hybrid_runner.archive WHERE id = $1", handle.id
    )
    assert state == "completed"


async def test_of_a_thousand_refused_outcomes_the_others_are_written(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """More than the worker has room for: it claims all the same."""
    caplog.set_level(logging.CRITICAL, "hybrid_runner.worker")
    await refuse(database)
    async with a_worker(dsn, slots=20) as (app, worker):
        await app.enqueue_many("bad", [{}] * 30)
        await until(lambda: worker.status().refused_settlements == 30)
        assert (await outcome(app, "good")).result == "ok"
        await allow(database)
        await worker.idle()
    assert worker.status().settled["completed"] == 31


async def test_reports_that_postgres_refuses_are_dropped_and_others_stored(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await refuse(
        database,
        "NEW.kind = 'bad_report' AND NEW.progress IS NOT NULL",
        before="UPDATE ON hybrid_runner.jobs",
    )
    app, enough = runner(dsn), asyncio.Event()

    @app.job("report", max_attempts=1)
    async def report(_: Any, job: Job) -> str:
        await job.progress(0.5, "half")
        return "reported"

    @app.job("bad_report", max_attempts=1)
    async def bad_report(_: Any, job: Job) -> None:
        while not enough.is_set():
            await job.progress(0.5, "bad")

    async with working(app):
        await app.enqueue("bad_report", {})
        jobs = [await outcome(app, "report") for _ in range(10)]
        enough.set()
    assert [job.progress for job in jobs] == [{"fraction": 0.5, "message": "half"}] * 10
    assert not said(caplog, "outage.failed")
