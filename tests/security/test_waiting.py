"""What producers, and whoever has a worker's login, can do to jobs of others that wait."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import Fail, Job, Snooze
from hybrid_runner.errors import RunnerError
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.storage import kind_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.upkeep.duties.expired_jobs import EndExpiredJobs
from hybrid_runner.upkeep.duties.unknown_kinds import UnknownKinds
from hybrid_runner.upkeep.rescuer import Rescuer
from tests.support.logins import Login, Logins
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

RUNNING = (
    "INSERT INTO hybrid_runner.jobs (kind, state, worker_id, claim, started_at, attempt,"
    " max_attempts) VALUES ('look', 'running', 'gone', 1, now(), 1, 3) RETURNING id"
)


async def execute_as(login: Logins, who: Login, statement: str, *arguments: Any) -> None:
    connection = await connect(login(who))
    await connection.execute(statement, *arguments)
    await connection.close()


async def test_kinds_that_a_producer_makes_up_keep_no_job_from_its_end(
    login: Logins, database: Connection
) -> None:
    """B5: more of them than one run of the duty can look at, and each by name before the others."""
    made_up = (
        "INSERT INTO hybrid_runner.jobs (kind, finish_by) SELECT 'a' || n, '2099-01-01'"
        " FROM generate_series(1, 1500) AS n"
    )
    await execute_as(login, Login.PRODUCER, made_up)
    over = "INSERT INTO hybrid_runner.jobs (kind, finish_by) VALUES ($1, '2020-01-01')"
    for kind in ("a", "victim"):
        await database.execute(over, kind)
    duty = EndExpiredJobs()
    for _ in range(2):
        await duty.run(database)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive") == 2
    await database.execute(over, "a")  # and from the beginning again
    for _ in range(2):
        await duty.run(database)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive") == 3


async def test_queues_that_a_producer_makes_up_hide_no_unknown_kind(
    login: Logins, database: Connection
) -> None:
    """B17: of queues that workers have opened."""
    made_up = (
        "INSERT INTO hybrid_runner.jobs (kind, queue, run_at) SELECT 'k', 'a' || n, '2090-01-01'"
        " FROM generate_series(1, 10100) AS n"
    )
    await execute_as(login, Login.PRODUCER, made_up)
    await database.execute("SELECT hybrid_runner.open_queue('victims')")
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, queue, run_at)"
        " VALUES ('victim', 'victims', now() - interval '1 hour')"
    )
    [found] = await kind_calls.unknown_kinds(database, timedelta(minutes=1))
    assert (found.queue, found.kind) == ("victims", "victim")


async def test_long_names_that_a_producer_makes_up_are_compared_in_time(
    login: Logins, database: Connection
) -> None:
    """B17: the duty's session gives it nine seconds, of which a busy machine may not give the
    processor for as many.
    """
    await database.execute(
        "INSERT INTO hybrid_runner.kinds (name, queue)"
        " SELECT rpad('a' || md5(n::text), 120, 'x'), 'default' FROM generate_series(1, 1000) AS n"
    )
    made_up = (
        "INSERT INTO hybrid_runner.jobs (kind, run_at)"
        " SELECT rpad('a' || md5(n::text), 120, 'y'), now() - interval '1 hour'"
        " FROM generate_series(1, 500) AS n"
    )
    await execute_as(login, Login.PRODUCER, made_up)
    duty = UnknownKinds(timedelta(minutes=1))
    connection = await connect(login(Login.WORKER), duty.session | {"statement_timeout": "50s"})
    await duty.run(connection)
    await connection.close()
    used: list[str] = []
    database.add_log_listener(lambda _, said: used.append(str(getattr(said, "detail", ""))))
    await database.execute("SET log_statement_stats = on; SET client_min_messages = log")
    found = await kind_calls.unknown_kinds(database, timedelta(minutes=1))
    await database.execute("RESET log_statement_stats; RESET client_min_messages")
    assert len(found) == 100
    by_processor = re.findall(r"([\d.]+) s user, ([\d.]+) s system, ", " ".join(used))
    assert 0.01 < sum(float(user) + float(system) for user, system in by_processor) < 9


@pytest.mark.parametrize(
    "column", ["began_at = '9998-12-31'", "began_at = 'infinity'", "run_at = '9998-12-31'"]
)
@pytest.mark.parametrize("budget", ["finish_within", "max_duration"])
async def test_a_lost_job_that_began_in_the_far_future_keeps_no_other_from_being_rescued(
    login: Logins, database: Connection, column: str, budget: str
) -> None:
    odd = await database.fetchval(RUNNING)
    await database.execute(RUNNING)
    await execute_as(
        login,
        Login.WORKER,
        f"UPDATE hybrid_runner.jobs SET {column}, {budget} = '10 years' WHERE id = $1",
        odd,
    )
    await Rescuer(Registry()).rescue(database)
    running = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'running'"
    assert await database.fetchval(running) == 0


@pytest.mark.parametrize("column", ["history", "errors"])
@pytest.mark.parametrize("value", ["1", '{"a": 1}'])
async def test_errors_and_history_that_are_no_lists_keep_no_job_from_its_outcome(
    login: Logins, database: Connection, dsn: str, column: str, value: str
) -> None:
    """What stands there is kept as the first of a list."""
    app = runner(dsn, heartbeat=0.3)

    @app.job("look", max_attempts=2)
    async def look(says: str, job: Job) -> Any:
        if job.snoozes or job.attempt > 1:
            return None
        if says == "raise":
            raise OSError
        return Fail("no") if says == "fail" else Snooze(0, reason=says)

    said = ("snooze", "raise", "fail", "cancel")
    insert = f"INSERT INTO hybrid_runner.jobs (kind, payload, {column}) VALUES ('look', $1, $2)"
    for says in said:
        await execute_as(login, Login.WORKER, insert, json.dumps(says), value)
    cancelled = await database.fetchval(
        "SELECT hybrid_runner.cancel(id) FROM hybrid_runner.jobs WHERE payload = '\"cancel\"'"
    )
    assert cancelled == "cancelled"
    lost = await database.fetchval(RUNNING)
    await database.execute(
        f"UPDATE hybrid_runner.jobs SET payload = '\"lost\"', {column} = $1 WHERE id = $2",
        value,
        lost,
    )
    await Rescuer(Registry()).rescue(database)
    async with working(app), asyncio.timeout(120):
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.archive", len(said) + 1)
    refused = "SELECT count(*) FROM hybrid_runner.archive WHERE errors::text LIKE '%efused%'"
    assert await database.fetchval(refused) == 0
    first = f"SELECT DISTINCT {column} ->> 0 FROM hybrid_runner.archive"
    if column == "errors":
        assert await database.fetchval(f"SELECT count(*) FROM ({first}) AS f") == 1


@pytest.mark.parametrize(
    "followed_by",
    ["ARRAY[[1, 2], [98, 99]]", "ARRAY[NULL, 2]", "ARRAY(SELECT generate_series(1, 100000))"],
    ids=["of two dimensions", "with a null", "too many"],
)
async def test_what_stands_in_followed_by_ends_no_stream_of_others(
    database: Connection, dsn: str, followed_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B13: whoever has a worker's login may write the archive."""
    app = runner(dsn)

    @app.job("look")
    async def look(_: dict[str, Any]) -> None: ...

    async with working(app) as worker, asyncio.timeout(120):
        first = await app.enqueue("look", {})
        await app.enqueue("look", {})
        await worker.settled(2)
        waits = await app.enqueue("look", {}, delay="1h")
        await database.execute(
            f"UPDATE hybrid_runner.archive SET followed_by = {followed_by} WHERE id = $1", first.id
        )
        async with aclosing(app.events(waits.id)) as others:
            assert (await anext(others)).name == "queued"
            told = list[int]()
            with suppress(RunnerError):  # as many were followed as may be
                async for event in app.events(first.id, follow_ups=True):
                    told.append(event.job.id)
                    assert len(event.job.followed_by or ()) <= 1001
            assert told[0] == first.id
            await app.cancel(waits.id)
            assert (await anext(others)).name == "cancelled"
    assert "the stream of events failed" not in caplog.messages
