"""Names that a producer makes up crowd nobody out of what is measured."""

from __future__ import annotations

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import OTHER
from hybrid_runner.upkeep.duties.queue_depths import as_metric_values
from tests.support.logins import Login, Logins

INVENT = """
INSERT INTO hybrid_runner.jobs (kind, queue)
SELECT 'k', '0A' || lpad(g::text, 5, '0') FROM generate_series(1, 1500) AS g
"""
WORKER = """
INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, kinds)
VALUES ('1', '', 1, '', '{"default": 10, "mail": 10}', '{"known"}')
"""
MANY = """
INSERT INTO hybrid_runner.jobs (kind, run_at)
SELECT $1, '2000-01-01' FROM generate_series(1, $2::int)
"""


async def invented(login: Logins, statement: str, *values: object) -> None:
    connection = await connect(login(Login.PRODUCER))
    try:
        await connection.execute(statement, *values)
    finally:
        await connection.close()


async def test_queues_that_workers_serve_or_opened_stay_where_they_are(
    login: Logins, database: Connection
) -> None:
    await database.execute(WORKER)
    for name in ("default", "mail", "idle"):
        await database.fetchval("SELECT hybrid_runner.open_queue($1)", name)
    await invented(login, INVENT)
    depths = await worker_calls.queue_depths(database)
    assert [each.queue for each in depths][:3] == ["default", "mail", "idle"]
    assert len(depths) == 103
    [default] = await worker_calls.scale(database, "default", 200)
    assert default.workers == 1
    assert {each.wanted for each in await worker_calls.scale(database, None, 200)} == {0}
    [asked_for] = await worker_calls.scale(database, "0A00001", 200)
    assert asked_for.wanted == 1
    labels = list(as_metric_values(depths, 0.0, 0.0)[table.QUEUE_WORKERS.name])
    assert [label for (label,) in labels][:3] == ["default", "mail", "idle"]
    assert len(labels) == 3 + 10 + len([OTHER])
    assert labels[-1] == (OTHER,)


async def test_all_of_five_thousand_queues_can_be_asked_for(database: Connection) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.queues (name) SELECT 'q' || g FROM generate_series(1, 5000) AS g"
    )
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, queue) SELECT 'k', 'q' || g"
        " FROM generate_series(1, 5000) AS g"
    )
    demand = await worker_calls.scale(database, None, 200)
    assert {each.queue for each in demand} == {f"q{g}" for g in range(1, 5001)}
    assert {(each.backlog, each.wanted) for each in demand} == {(1, 1)}
    [last] = await worker_calls.scale(database, "q5000", 200)
    assert last.backlog == 1
    assert await worker_calls.scale(database, "nobody's", 200) == []


async def test_jobs_that_no_living_worker_can_run_want_no_workers(
    login: Logins, database: Connection
) -> None:
    await database.fetchval("SELECT hybrid_runner.open_queue('default')")
    await invented(login, MANY, "unheard.of", 30_000)
    [alone] = await worker_calls.scale(database, "default", 10)
    assert alone.wanted == 1000, "without a worker nobody can tell which kinds are known"
    await database.execute(WORKER)
    [none] = await worker_calls.scale(database, "default", 10)
    assert (none.backlog >= 10_000, none.wanted) == (True, 0)
    await invented(
        login, "INSERT INTO hybrid_runner.jobs (kind) SELECT 'known' FROM generate_series(1, 50)"
    )
    [some] = await worker_calls.scale(database, "default", 10)
    assert some.wanted == 5


async def test_a_few_unknown_kinds_do_not_hide_the_backlog(database: Connection) -> None:
    await database.fetchval("SELECT hybrid_runner.open_queue('default')")
    await database.execute(WORKER)
    await database.execute(MANY, "unheard.of", 10)
    await database.execute(MANY, "known", 5_000)
    [demand] = await worker_calls.scale(database, "default", 10)
    assert 495 <= demand.wanted <= 501
