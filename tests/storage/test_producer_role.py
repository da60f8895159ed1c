from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import enqueue

DOCUMENTED = {
    "queue": "'images'",
    "kind": "'work'",
    "priority": "3",
    "payload": "'{}'",
    "data": "'{}'",
    "key": "'key'",
    "run_at": "now()",
    "max_attempts": "2",
    "timeout": "'5s'",
    "finish_by": "now()",
    "start_by": "now()",
    "max_snoozes": "120",
    "max_duration": "'29m'",
    "finish_within": "'1h'",
    "traceparent": "'00-1-2-01'",
}
FORBIDDEN = [
    "id",
    "state",
    "attempt",
    "snoozes",
    "began_at",
    "waits_for",
    "claim",
    "worker_id",
    "started_at",
    "progress",
    "errors",
    "history",
    "version",
    "cancel_requested_at",
    "created_at",
    "enqueued_by",
    "source",
    "row_key",
    "schedule",
    "tick",
]


@pytest.fixture
async def producer(database: Connection) -> AsyncIterator[Connection]:
    """A session of the producer role."""
    await enqueue(database, key="taken")
    await database.execute("SET ROLE hybrid_runner_producer")
    yield database
    await database.execute("RESET ROLE")


async def test_every_column_is_either_documented_or_forbidden(database: Connection) -> None:
    columns = await database.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'hybrid_runner.jobs'::regclass AND"
        " attnum > 0 AND NOT attisdropped"
    )
    assert {column[0] for column in columns} == {*DOCUMENTED, *FORBIDDEN}


async def test_a_producer_inserts_the_documented_columns(producer: Connection) -> None:
    """F5"""
    columns, values = ", ".join(DOCUMENTED), ", ".join(DOCUMENTED.values())
    job = await producer.fetchval(
        f"INSERT INTO hybrid_runner.jobs ({columns}) VALUES ({values}) RETURNING id"
    )
    assert isinstance(job, int)


async def test_three_columns_are_enough_and_two_and_one(producer: Connection) -> None:
    """F5"""
    await producer.execute(
        "INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ('images', 'work', '{\"a\":"
        " 1}')"
    )
    await producer.execute(
        "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('work', '{\"a\": 1}')"
    )
    await producer.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('work')")


@pytest.mark.parametrize("column", FORBIDDEN)
async def test_a_producer_writes_no_other_column(column: str, producer: Connection) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await producer.execute(
            f"INSERT INTO hybrid_runner.jobs (kind, {column}) VALUES ('work', DEFAULT)"
        )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE hybrid_runner.jobs SET priority = 0",
        "UPDATE hybrid_runner.jobs SET payload = '{}' WHERE id = 1",
        "DELETE FROM hybrid_runner.jobs",
        "TRUNCATE hybrid_runner.jobs",
        "SELECT payload FROM hybrid_runner.jobs",
        "SELECT key FROM hybrid_runner.jobs",
        "INSERT INTO hybrid_runner.jobs (kind) VALUES ('work') RETURNING payload",
        "SELECT id FROM hybrid_runner.archive",
        "SELECT id FROM hybrid_runner.all_jobs",
        "SELECT name FROM hybrid_runner.queues",
        "SELECT id FROM hybrid_runner.workers",
        "SELECT nextval('hybrid_runner.claims')",
        "SELECT hybrid_runner.cancel(1)",
        "SELECT hybrid_runner.retry(1)",
        "SELECT hybrid_runner.amend(1, 1)",
        "SELECT hybrid_runner.pause('default')",
        "SELECT hybrid_runner.resume('default')",
        "SELECT hybrid_runner.open_queue('default')",
        "SELECT hybrid_runner.ring('default', now())",
        "SELECT hybrid_runner.make_archive_partitions()",
        "CREATE TABLE hybrid_runner.mine (id int)",
    ],
)
async def test_a_producer_does_nothing_else(statement: str, producer: Connection) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await producer.execute(statement)


async def test_a_producer_may_enqueue_and_ask_for_the_queue_of_a_kind_only(
    producer: Connection,
) -> None:
    callable_ones = await producer.fetch(
        "SELECT DISTINCT p.proname FROM pg_proc AS p WHERE p.pronamespace ="
        " 'hybrid_runner'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1"
    )
    assert [row[0] for row in callable_ones] == [
        "enqueue",
        "enqueue_job",
        "enqueue_jobs",
        "key_of",
        "next_fire",
        "next_ticks",
        "next_ticks_of",
        "pause_schedule",
        "queue_of",
        "resume_schedule",
        "run_now",
        "schedule",
        "similar_kind",
        "unschedule",
    ]
    first = await producer.fetchval("SELECT hybrid_runner.enqueue('work', key => 'mine')")
    assert await producer.fetchval("SELECT hybrid_runner.enqueue('work', key => 'mine')") == first


async def test_a_stranger_may_not_even_look(database: Connection) -> None:
    callable_ones = await database.fetch(
        "SELECT p.proname FROM pg_proc AS p, unnest(coalesce(p.proacl, acldefault('f',"
        " p.proowner))::text[]) AS granted WHERE p.pronamespace = 'hybrid_runner'::regnamespace AND"
        " granted LIKE '=%'"
    )
    assert callable_ones == []


async def test_a_producer_is_told_of_a_key_conflict(producer: Connection) -> None:
    with pytest.raises(asyncpg.UniqueViolationError) as refusal:
        await producer.execute(
            "INSERT INTO hybrid_runner.jobs (kind, key) VALUES ('work', 'taken')"
        )
    assert refusal.value.constraint_name == "jobs_one_live_job_per_key"


async def test_a_producer_may_skip_what_is_there_already(producer: Connection) -> None:
    statement = (
        "INSERT INTO hybrid_runner.jobs (kind, key) VALUES ('work', $1) ON CONFLICT DO NOTHING"
        " RETURNING id"
    )
    assert await producer.fetchval(statement, "taken") is None
    assert isinstance(await producer.fetchval(statement, "free"), int)


async def test_a_worker_runs_what_a_producer_inserted(producer: Connection) -> None:
    """F5"""
    await producer.execute(
        "INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ('images', 'work', '{\"a\":"
        " 1}')"
    )
    await producer.execute("SET ROLE hybrid_runner_worker")
    [claim] = (
        await claim_calls.claim_jobs(
            producer,
            "images",
            claim_calls.Kinds([claim_calls.KindLimits("work", 5, None)]),
            10,
            "worker-1",
            1,
        )
    ).claims
    assert claim.payload == '{"a": 1}'
