"""The backstop of budgets: jobs that wait past their time, of kinds that no live worker knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.model.jobs import JobView
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.storage import client_calls, kind_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS
from hybrid_runner.storage.queries import query
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.upkeep.duties.expired_jobs import EndExpiredJobs
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working

Another = Callable[[], Awaitable[Connection]]
MINUTE = timedelta(minutes=1)
NOT_YET = (
    '[{"at": "2026-01-01T00:00:00+00:00", "attempt": 1, "type": "Snooze",'
    ' "message": "not ready yet"}]'
)


async def waiting(
    database: Connection,
    began: timedelta | None = None,
    *,
    kind: str = "poll",
    finish_by: timedelta | None = None,
    due: timedelta = timedelta(0),
    **columns: Any,
) -> int:
    """A job that waits; it began, and is to be finished, so long from now."""
    columns = {"state": "queued", "snoozes": 61, "errors": NOT_YET} | columns
    names = ", ".join(("kind", "run_at", "began_at", "finish_by", *columns))
    places = ", ".join(f"${number}" for number in range(5, 5 + len(columns)))
    job: int = await database.fetchval(
        f"INSERT INTO hybrid_runner.jobs ({names}) VALUES ($1, now() + $2, now() + $3, now() + $4,"
        f" {places}) RETURNING id",
        kind,
        due,
        began,
        finish_by,
        *columns.values(),
    )
    return job


async def ended(database: Connection) -> list[int]:
    """The jobs that one run of the duty ends, of those that are there."""
    await EndExpiredJobs().run(database)
    rows = await database.fetch("SELECT id FROM hybrid_runner.archive ORDER BY id")
    return [row[0] for row in rows]


async def view_of(database: Connection, job: int) -> JobView:
    view = await client_calls.get_job(database, job)
    assert view is not None
    return view


def counted(duty: EndExpiredJobs) -> float:
    """How many jobs of the queue it has ended."""
    value = duty.metric_values()[table.EXPIRED_JOBS.name].get(("default",), 0)
    assert isinstance(value, int | float)
    return value


async def knows(database: Connection, *kinds: str, name: str = "w") -> None:
    """A worker that lives and knows these kinds."""
    await database.execute(
        "INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, kinds)"
        " VALUES ($1, '', 1, '', '{\"default\": 1}', $2)",
        name,
        kinds,
    )


async def test_a_budget_that_nobody_watches_ends_its_job_a_minute_past(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B5: with the words that a worker would have used, and why it was not one."""
    job = await waiting(database, -timedelta(minutes=31), max_duration=timedelta(minutes=29))
    assert await ended(database) == [job]
    view = await view_of(database, job)
    assert (view.state, view.attempt, view.snoozes, view.result) == ("failed", 1, 61, None)
    assert [error["type"] for error in view.errors] == ["Snooze", "BudgetUsedUp"]
    assert view.errors[-1]["message"] == (
        "max_duration (29m) is used up after 61 snoozes: not ready yet;"
        " no live worker knows its kind"
    )
    assert await database.fetchval("SELECT id FROM hybrid_runner.unreported_ends") == job
    [line] = caplog.records
    assert (line.levelname, line.__dict__["job"]) == ("ERROR", job)


@pytest.mark.parametrize(
    "past", [timedelta(minutes=29), timedelta(minutes=29, seconds=20), timedelta(minutes=1)]
)
async def test_for_a_minute_it_is_left_to_a_worker_that_may_be_about_to_start(
    database: Connection, past: timedelta
) -> None:
    """B5, B17"""
    await waiting(database, -past, max_duration=timedelta(minutes=29))
    assert await ended(database) == []


async def test_the_budgets_of_the_kind_count_where_the_job_has_none_of_its_own(
    database: Connection,
) -> None:
    """B5"""
    half, hour = timedelta(minutes=30), timedelta(hours=1)
    await kind_calls.declare_kinds(database, [DeclaredKind("poll", "default", max_duration=half)])
    by_kind = await waiting(database, -timedelta(minutes=40))
    await waiting(database, -timedelta(minutes=40), max_duration=hour)
    await waiting(database, -timedelta(minutes=40), kind="other")
    assert await ended(database) == [by_kind]


async def test_finish_by_and_finish_within_bind_without_a_worker_too(database: Connection) -> None:
    """B5: begun or not."""
    past, within = -timedelta(minutes=2), timedelta(minutes=5)
    jobs = [
        await waiting(database, finish_by=past),
        await waiting(database, -timedelta(minutes=7), finish_by=past),
        await waiting(database, due=-timedelta(minutes=7), finish_within=within),
        await waiting(database, -timedelta(minutes=7), finish_within=within),
    ]
    await waiting(database, finish_by=timedelta(minutes=1))
    await waiting(database, due=timedelta(minutes=7), finish_within=within)
    assert await ended(database) == jobs
    view = await view_of(database, jobs[0])
    assert view.errors[-1]["type"] == "FinishByPassed"
    assert "passes before the next attempt: not ready yet; no live worker" in str(
        view.errors[-1]["message"]
    )


async def test_a_kind_that_a_live_worker_knows_is_left_to_it(database: Connection) -> None:
    """B17"""
    await knows(database, "poll")
    await knows(database, "gone", name="dead")
    await database.execute("UPDATE hybrid_runner.workers SET dead_at = now() WHERE id = 'dead'")
    long_ago, budget = -timedelta(hours=1), timedelta(minutes=1)
    await waiting(database, long_ago, max_duration=budget)
    gone = await waiting(database, long_ago, kind="gone", max_duration=budget)
    assert await ended(database) == [gone]


async def test_what_runs_or_has_no_budget_stays(database: Connection) -> None:
    await waiting(database, -timedelta(days=365))
    await waiting(database, -timedelta(days=1), state="running", max_duration=MINUTE)
    await waiting(database, max_duration=MINUTE)  # it has not begun
    assert await ended(database) == []


async def test_however_it_ends_its_hook_is_stored(database: Connection) -> None:
    """B11: a run whose time is over is cleaned up after."""
    hook = DeclaredKind("poll", "default", on_end="clean-up", max_duration=MINUTE)
    await kind_calls.declare_kinds(database, [hook])
    job = await waiting(database, -timedelta(hours=1), payload='{"run": "7"}')
    assert await ended(database) == [job]
    [hooked] = await database.fetch("SELECT id, kind, key, payload FROM hybrid_runner.jobs")
    assert (hooked["kind"], hooked["key"]) == ("clean-up", f"ended:{job}")
    payload = json.loads(hooked["payload"])
    assert (payload["state"], payload["payload"]) == ("failed", {"run": "7"})
    assert "max_duration (1m) is used up" in payload["reason"]
    assert (await view_of(database, job)).followed_by == [hooked["id"]]


async def test_a_job_that_somebody_holds_is_ended_at_the_next_turn_and_holds_up_no_other(
    database: Connection, another: Another
) -> None:
    """Whoever enqueued it may be replacing it in an open transaction."""
    held, free = [
        await waiting(database, -timedelta(hours=1), max_duration=MINUTE) for _ in range(2)
    ]
    holder = await another()
    async with holder.transaction():
        await holder.execute("SELECT FROM hybrid_runner.jobs WHERE id = $1 FOR UPDATE", held)
        assert await ended(database) == [free]
    assert await ended(database) == [held, free]


async def test_a_job_that_changes_after_it_was_found_is_left_as_it_is(
    database: Connection,
) -> None:
    """It was retried, amended, or claimed by a worker that has just started."""
    job = await waiting(database, -timedelta(hours=1), max_duration=MINUTE)
    found = await kind_calls.find_expired(database, "poll", 0, MINUTE, 10)
    await database.execute("UPDATE hybrid_runner.jobs SET version = version + 1")
    assert await kind_calls.end_expired(database, [(found.jobs[0], "{}")]) == set()
    assert await ended(database) == [job]


async def test_a_job_that_postgres_refuses_to_move_holds_up_no_other(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF OLD.priority = 7 THEN RAISE EXCEPTION 'not today'; END IF; RETURN OLD; END $$;"
        "CREATE TRIGGER refuse BEFORE DELETE ON hybrid_runner.jobs"
        " FOR EACH ROW EXECUTE FUNCTION public.refuse()"
    )
    jobs = [
        await waiting(database, -timedelta(hours=1), max_duration=MINUTE, priority=priority)
        for priority in (5, 7, 5)
    ]
    assert await ended(database) == [jobs[0], jobs[2]]
    [warning] = [line for line in caplog.records if line.levelname == "WARNING"]
    assert "not today" in warning.message
    assert warning.__dict__["job"] == jobs[1]


async def test_times_and_budgets_that_reach_far_spoil_no_look(database: Connection) -> None:
    """Whoever may insert can write them: this one passes for a day, and is more than ten years."""
    odd = "'5000 years -1799999 days'"
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, run_at, finish_within, max_duration) VALUES"
        f" ('poll', 'infinity', '1 day', '1 day'), ('poll', '9998-12-31', {odd}, NULL),"
        " ('poll', '1970-01-01', '1 second', NULL)"
    )
    job = await waiting(database, -timedelta(hours=1), max_duration=MINUTE)
    assert job in await ended(database)


async def test_however_many_wait_each_is_looked_at_in_turn(database: Connection) -> None:
    """A look reads a bounded number of rows, and the next one goes on behind them: those in front
    that may wait for longer hide none.
    """
    for _ in range(25):
        await waiting(database, -timedelta(hours=1), max_duration=timedelta(days=1))
    jobs = [await waiting(database, -timedelta(hours=1), max_duration=MINUTE) for _ in range(12)]
    other = await waiting(database, -timedelta(hours=1), max_duration=MINUTE, kind="other")
    duty = EndExpiredJobs(rows=10, looks=2)
    gone = "SELECT array_agg(id ORDER BY id) FROM hybrid_runner.archive"
    seen = []
    for _ in range(5):
        await duty.run(database)
        seen.append(await database.fetchval(gone))
    assert seen[0] == [other]
    assert seen[-1] == [*jobs, other]


async def test_several_workers_may_do_it_at_once(database: Connection, another: Another) -> None:
    """Each job ends once."""
    jobs = [await waiting(database, -timedelta(hours=1), max_duration=MINUTE) for _ in range(50)]
    one, two = EndExpiredJobs(), EndExpiredJobs()
    other = await another()
    await asyncio.gather(one.run(database), two.run(other))
    counts = [counted(one), counted(two)]
    assert sum(counts) == len(jobs)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive") == len(jobs)


async def test_a_worker_ends_them_by_itself_and_reports_their_ends(
    dsn: str, database: Connection
) -> None:
    """B5, B17"""
    job = await waiting(database, -timedelta(hours=1), max_duration=MINUTE)
    app: Runner = runner(dsn, heartbeat=0.2)

    @app.job("other")
    async def other(_payload: object) -> None: ...

    async with working(app, deaf=True) as worker:
        await until(lambda: worker.status().metric_values[table.EXPIRED_JOBS.name])
        view = await app.get(job)
        assert view is not None
        assert view.state == "failed"
        await database.execute(
            "UPDATE hybrid_runner.unreported_ends SET ended_at = ended_at - interval '1 hour'"
        )
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.unreported_ends", 0)


async def test_looks_read_an_index_that_has_no_other_jobs(dsn: str, database: Connection) -> None:
    """B5: as cheap beside any backlog; with the plans of any table."""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind) SELECT 'k' || i % 7 FROM generate_series(1, 20000) i"
    )
    await waiting(database, -timedelta(hours=1), max_duration=MINUTE)
    connection = await connect(dsn, FOR_CLAIMS)
    for name, types, arguments in (
        ("find_expired_kinds", "int8, text", "1000, ''"),
        ("find_expired", "text, int8, interval, int8, bool", "'poll', 0, '1 minute', 1000, true"),
    ):
        await connection.execute(f"PREPARE {name} ({types}) AS {query(name)}")
        text = await connection.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({arguments})"
        )
        plan = json.loads(text)[0]["Plan"]
        assert "jobs_with_a_time_limit" in text
        assert "jobs_due" not in text
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 30
    await connection.close()
