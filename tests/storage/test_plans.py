"""How much is read must depend on the batch, not on the backlog, whenever the plan was made."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS, for_heartbeat
from hybrid_runner.storage.queries import functions, query
from tests.support.server import Databases

BATCH = 50
BACKLOG = 200_000
LANES = (2, 5, 8)
FILL = """
INSERT INTO hybrid_runner.jobs (kind, queue, priority, run_at)
SELECT
    'work', 'default', (ARRAY[2, 5, 8])[n % 3 + 1],
    now() + CASE WHEN n % 10 = 0 THEN 1 ELSE -1 END * make_interval(secs => n)
FROM generate_series(1, 200000) AS n
"""
Plan = dict[str, Any]

STARTS = "array_fill('-infinity'::timestamptz, ARRAY[10]), array_fill(0::int8, ARRAY[10])"
TYPES = (
    "text, text[], int8, text, int4[], interval[], timestamptz[], int8[], int8, bool[], int8[],"
    " int4"
)
REST = "'{t}', '{}', 65536"
CLAIM = (
    "claim_jobs",
    TYPES,
    f"'default', ARRAY['work'], {BATCH}, 'w', ARRAY[5], ARRAY[NULL::interval], {STARTS}, 1, {REST}",
)
DUE = ("next_due", "text", "'default'")


@pytest.fixture(scope="module", params=["fresh statistics", "statistics of an empty table"])
def deep_backlog(
    request: pytest.FixtureRequest, databases: Databases, template: str
) -> Iterator[str]:
    """A database with 200,000 queued jobs in three lanes, a tenth of them not due yet; autovacuum
    may not have looked at it.
    """
    with databases.fresh(template) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ANALYZE hybrid_runner.jobs")
            connection.execute(FILL)
            if request.param == "fresh statistics":
                connection.execute("ANALYZE hybrid_runner.jobs")
        yield dsn


@pytest.fixture
async def backlogged(deep_backlog: str) -> AsyncIterator[Connection]:
    """A connection to it, set up as the product sets up its own; what it does is rolled back."""
    connection = await connect(deep_backlog, FOR_CLAIMS)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def explain(
    connection: Connection, name: str, types: str, arguments: str, *, prepare: bool = True
) -> Plan:
    """The plan of a query file, as it was executed."""
    if prepare:
        await connection.execute(f"PREPARE {name} ({types}) AS {query(name)}")
    text = await connection.fetchval(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({arguments})"
    )
    plan: Plan = json.loads(text)[0]["Plan"]
    return plan


def nodes(plan: Plan) -> Iterator[Plan]:
    """A plan's nodes, from the top."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def scans(plan: Plan) -> list[Plan]:
    """The nodes that read the jobs."""
    return [
        node
        for node in nodes(plan)
        if node.get("Relation Name") == "jobs" and "Scan" in node["Node Type"]
    ]


def rows_read(node: Plan) -> float:
    """Rows that a node touched, wanted or not."""
    removed = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])


def assert_reads_a_batch(plan: Plan, most: float, buffers: int) -> None:
    """The law of this file."""
    read = scans(plan)
    assert read
    assert not [node for node in read if node["Node Type"] == "Seq Scan"]
    assert "jobs_due" in {node.get("Index Name") for node in nodes(plan)}
    assert sum(rows_read(node) for node in read) <= most, read
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= buffers


async def test_a_claim_reads_a_batch_whatever_the_backlog(backlogged: Connection) -> None:
    """A8"""
    plan = await explain(backlogged, *CLAIM)
    assert plan["Actual Rows"] == BATCH
    # Each job is read once to be picked and once to be claimed.
    assert_reads_a_batch(plan, most=2 * BATCH + len(LANES), buffers=60 * BATCH)


async def test_a_claim_that_crosses_lanes_reads_a_batch(backlogged: Connection) -> None:
    """A7, A8"""
    await backlogged.execute("DELETE FROM hybrid_runner.jobs WHERE priority = 2 AND id > 60")
    plan = await explain(backlogged, *CLAIM)
    assert plan["Actual Rows"] == BATCH
    assert_reads_a_batch(
        plan, most=2 * BATCH + len(LANES), buffers=1_000_000
    )  # the deleted ones are still in the index


async def test_the_next_due_time_reads_one_row_a_lane(backlogged: Connection) -> None:
    """A1, A8"""
    plan = await explain(backlogged, *DUE)
    assert_reads_a_batch(plan, most=len(LANES), buffers=100)


async def test_a_statement_prepared_on_an_empty_table_is_as_good(
    databases: Databases, template: str
) -> None:
    """A8: a plan from the day the table was empty must not ruin the day it is not."""
    with databases.fresh(template) as dsn:
        connection = await connect(dsn, FOR_CLAIMS)
        heartbeat = (*QUEUES, "ARRAY['default'], '36500 days'")
        for name, types, arguments in (CLAIM, DUE, heartbeat):
            await connection.execute(f"PREPARE {name} ({types}) AS {query(name)}")
            for _ in range(10):  # Postgres considers a generic plan after five
                await connection.fetch(f"EXECUTE {name} ({arguments})")
        await connection.execute(FILL)
        claim = await explain(connection, *CLAIM, prepare=False)
        due = await explain(connection, *DUE, prepare=False)
        beat = await explain(connection, *heartbeat, prepare=False)
        await connection.close()
    assert claim["Actual Rows"] == BATCH
    assert_reads_a_batch(claim, most=2 * BATCH + len(LANES), buffers=60 * BATCH)
    assert_reads_a_batch(due, most=len(LANES), buffers=100)
    assert_reads_a_batch(beat, most=2 * len(LANES), buffers=150)


QUEUES = ("ask_queues", "text[], interval")
NEWS = ("ask_news", "text, int8, int8[], int8[], interval, text[], interval")


@pytest.mark.parametrize("lookback", ["36500 days", "10 minutes", "0"])
@pytest.mark.parametrize("queues", ["default", "elsewhere"])
async def test_a_heartbeat_reads_two_rows_a_lane_of_its_own_queues(
    backlogged: Connection, queues: str, lookback: str
) -> None:
    """However many jobs are due there, or in the queues of others."""
    for name, value in for_heartbeat(10).items():
        await backlogged.execute(f"SET LOCAL {name} = '{value}'")
    plan = await explain(backlogged, *QUEUES, f"ARRAY['{queues}'], '{lookback}'")
    assert_reads_a_batch(plan, most=2 * len(LANES), buffers=150)


async def test_a_heartbeat_reads_the_rows_of_what_it_runs(backlogged: Connection) -> None:
    for name, value in for_heartbeat(10).items():
        await backlogged.execute(f"SET LOCAL {name} = '{value}'")
    some = "ARRAY(SELECT id FROM hybrid_runner.jobs LIMIT 50)"
    ids = await backlogged.fetchval(f"SELECT ({some})::text")
    plan = await explain(
        backlogged,
        *NEWS,
        f"'w', 1, '{ids}', array_fill(1::int8, ARRAY[{BATCH}]), '30 s', ARRAY['prune'], '30 s'",
    )
    assert {node["Index Name"] for node in scans(plan)} == {"jobs_pkey"}
    assert sum(rows_read(node) for node in scans(plan)) <= BATCH


async def test_a_heartbeat_that_looks_back_a_little_passes_over_no_old_dead_entries(
    backlogged: Connection,
) -> None:
    """Entries of jobs that were claimed while an old transaction kept vacuum from cleaning up."""
    await backlogged.execute(
        "DELETE FROM hybrid_runner.jobs WHERE run_at < now() - interval '11 minutes'"
    )
    for name, value in for_heartbeat(10).items():
        await backlogged.execute(f"SET LOCAL {name} = '{value}'")
    everything = await explain(backlogged, *QUEUES, "ARRAY['default'], '36500 days'")
    recent = await explain(backlogged, *QUEUES, "ARRAY['default'], '10 minutes'", prepare=False)
    assert everything["Shared Hit Blocks"] + everything["Shared Read Blocks"] > 1000
    assert_reads_a_batch(recent, most=2 * len(LANES), buffers=150)


def statement(name: str) -> str:
    """A query, or the statement inside a function, since EXPLAIN does not look there."""
    source = dict(functions()).get(name)
    if source is None:
        return query(name)
    head, _, body = source.partition("RETURN QUERY\n")
    signature = head.partition("(\n")[2].partition("\n)")[0]
    parameters = [parameter.split()[0] for parameter in signature.split(",")]
    for place, parameter in enumerate(parameters, start=1):
        body = body.replace(f"{name}.{parameter}", f"${place}")
    return body.partition(";\n")[0]


@pytest.mark.parametrize(
    ("name", "types", "arrays"),
    [
        (
            "take_ended",
            "int8[], int8[], text[], text[], text[], timestamptz",
            ("'completed'::text", "NULL::text", "NULL::text"),
        ),
        (
            "requeue_jobs",
            (
                "int8[], int8[], interval[], bool[], jsonb[], jsonb[], text[], text[],"
                " timestamptz[], text[], bool, bool"
            ),
            (
                "interval '1s'",
                "false",
                "NULL::jsonb",
                "NULL::jsonb",
                "NULL::text",
                "'snooze'::text",
                "NULL::timestamptz",
                "NULL::text",
            ),
        ),
        (
            "repeat_jobs",
            (
                "int8[], int8[], interval[], jsonb[], timestamptz[], text[], text[], bool, bool,"
                " text[]"
            ),
            ("interval '1s'", "NULL::jsonb", "NULL::timestamptz"),
        ),
        ("record_progress", "int8[], int8[], jsonb[]", ("'1'::jsonb",)),
        ("save_data", "int8[], int8[], jsonb[]", ("'1'::jsonb",)),
    ],
)
async def test_settling_reads_a_batch_whatever_the_backlog(
    name: str, types: str, arrays: tuple[str, ...], backlogged: Connection
) -> None:
    """A8: prepared before anything ran, and with many jobs running beside those that
    are settled.
    """
    await backlogged.execute(f"PREPARE {name} ({types}) AS {statement(name)}")
    await backlogged.execute(
        "UPDATE hybrid_runner.jobs SET state = 'running', claim = 7 WHERE id % 4 = 0"
    )
    ids = await backlogged.fetchval(
        "SELECT array_agg(id)::text FROM (SELECT id FROM hybrid_runner.jobs WHERE claim = 7 LIMIT"
        " 50) AS j"
    )
    filled = ", ".join(f"array_fill({value}, ARRAY[{BATCH}])" for value in ("7::int8", *arrays))
    more = ", NULL" * (types.count(",") - filled.count("array_fill"))
    plan = await explain(backlogged, name, types, f"'{ids}'::int8[], {filled}{more}", prepare=False)
    read = scans(plan)
    assert not [node for node in read if node["Node Type"] == "Seq Scan"]
    assert 0 < sum(rows_read(node) for node in read) <= 4 * BATCH, read
    # Joined by hash: a loop over loops costs the square of the batch.
    compared = sum(
        node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"] for node in nodes(plan)
    )
    assert compared <= 4 * BATCH, plan


@pytest.mark.parametrize("on_conflict", ["exists", "replace"])
async def test_to_enqueue_reads_a_row_or_two_whatever_the_backlog(
    dsn: str, on_conflict: str
) -> None:
    """Its plans are made once in a session, here while the tables are empty, and kept."""
    connection = await connect(dsn)
    await connection.execute("VACUUM ANALYZE hybrid_runner.jobs, hybrid_runner.kinds")
    enqueue = "SELECT hybrid_runner.enqueue('work', key => 'k', on_conflict => $1)"
    for _ in range(2):
        await connection.execute(enqueue, on_conflict)
    await connection.execute(FILL.replace("200000", "20000"))
    await connection.execute(
        "INSERT INTO hybrid_runner.kinds (name, queue)"
        " SELECT 'kind' || i, 'default' FROM generate_series(1, 2000) AS i"
        " UNION ALL SELECT 'work', 'default'"
    )
    read = (
        "SELECT sum(seq_tup_read + idx_tup_fetch)::int FROM pg_stat_xact_user_tables"
        " WHERE relname IN ('jobs', 'kinds')"
    )
    async with connection.transaction():
        before = await connection.fetchval(read) or 0
        await connection.execute(enqueue, on_conflict)
        assert await connection.fetchval(read) - before < 10
    await connection.close()
