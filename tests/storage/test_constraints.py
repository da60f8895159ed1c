from __future__ import annotations

import asyncpg
import pytest

from hybrid_runner.errors import EnqueueError, RunnerError
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.failures import translate
from tests.support.jobs import enqueue

QUEUE = "the job was refused: queue is 1 to 48 of letters digits and punctuation"
KIND = "the job was refused: kind is 1 to 128 of letters digits and punctuation"
FINISH_BY = "the job was refused: finish by and start by are between 1970 and 9999"
REFUSED = [
    ("priority", "99", "the job was refused: priority is 0 to 9"),
    ("priority", "-1", "the job was refused: priority is 0 to 9"),
    ("timeout", "'-5 seconds'", "the job was refused: timeout is positive and at most ten years"),
    ("timeout", "'0'", "the job was refused: timeout is positive and at most ten years"),
    ("max_attempts", "0", "the job was refused: max attempts is 1 to 1000"),
    ("max_attempts", "1001", "the job was refused: max attempts is 1 to 1000"),
    ("queue", "''", QUEUE),
    ("queue", "'two words'", QUEUE),
    ("queue", "'-dash'", QUEUE),
    ("queue", "'naïve'", QUEUE),
    ("queue", "E'default\\n'", QUEUE),
    ("queue", "repeat('q', 49)", QUEUE),
    ("queue", "'q''; DROP TABLE hybrid_runner.jobs; --'", QUEUE),
    ("queue", "'😀'", QUEUE),
    ("kind", "''", KIND),
    ("kind", "repeat('k', 129)", KIND),
    ("key", "''", "the job was refused: key is 1 to 512 bytes"),
    ("key", "repeat('é', 257)", "the job was refused: key is 1 to 512 bytes"),
    (
        "payload",
        "jsonb_build_object('x', repeat('x', 2 * 1024 * 1024))",
        "the job was refused: payload is at most 1 mib as text",
    ),
    (
        "data",
        "jsonb_build_object('x', repeat('x', 2 * 1024 * 1024))",
        "the job was refused: data is at most 1 mib as text",
    ),
    ("timeout", "'1000 years'", "the job was refused: timeout is positive and at most ten years"),
    (
        "run_at",
        "'4713-01-01 BC'",
        "the job was refused: run at is between 1970 and 9999 or infinity",
    ),
    ("run_at", "'-infinity'", "the job was refused: run at is between 1970 and 9999 or infinity"),
    (
        "run_at",
        "'294276-12-31'",
        "the job was refused: run at is between 1970 and 9999 or infinity",
    ),
    ("finish_by", "'infinity'", FINISH_BY),
    ("finish_by", "'294276-12-31'", FINISH_BY),
    ("start_by", "'infinity'", FINISH_BY),
    ("traceparent", "repeat('t', 257)", "the job was refused: traceparent is at most 256 bytes"),
    (
        "payload",
        'E\'{"a": "\\\\u0000"}\'',
        "Postgres cannot store a NUL character: remove or escape it",
    ),
]
ACCEPTED = [
    ("priority", "0"),
    ("priority", "9"),
    ("timeout", "'1 millisecond'"),
    ("max_attempts", "1000"),
    ("queue", "repeat('q', 48)"),
    ("queue", "'eu/images:small_1.high-memory'"),
    ("kind", "'mail.send'"),
    ("key", "repeat('k', 512)"),
    ("payload", "jsonb_build_object('x', repeat('x', 1000 * 1000))"),
    ("payload", "'null'"),
    ("payload", "'[1, 2]'"),
    ("run_at", "'infinity'"),
]


def insert(column: str, value: str) -> str:
    """An INSERT of one value, and of a kind if that is another column."""
    if column == "kind":
        return f"INSERT INTO hybrid_runner.jobs (kind) VALUES ({value})"
    return f"INSERT INTO hybrid_runner.jobs (kind, {column}) VALUES ('work', {value})"


@pytest.mark.parametrize(("column", "value", "message"), REFUSED)
async def test_what_cannot_be_a_job_is_refused_with_a_readable_reason(
    column: str, value: str, message: str, database: Connection
) -> None:
    with pytest.raises(asyncpg.PostgresError) as refusal:
        await database.execute(insert(column, value))
    error = translate(refusal.value)
    assert isinstance(error, EnqueueError)
    assert str(error) == message
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.parametrize(("column", "value"), ACCEPTED)
async def test_what_is_at_the_edge_is_accepted(
    column: str, value: str, database: Connection
) -> None:
    await database.execute(insert(column, value))


async def test_the_database_itself_names_the_constraint_in_its_error(database: Connection) -> None:
    with pytest.raises(
        asyncpg.CheckViolationError, match='violates check constraint "jobs_priority_is_0_to_9"'
    ):
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, priority) VALUES ('work', 99)"
        )


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (NewJob("work", priority=99), "priority is 0 to 9"),
        (NewJob("work", priority=2_000_000_000), "priority is 0 to 9"),
        (NewJob("work", max_attempts=99_999), "max attempts is 1 to 1000"),
        (NewJob("work", queue="two words"), "queue is 1 to 48"),
        (NewJob("work", payload='{"a": "\\u0000"}'), "NUL character"),
        (NewJob("work", key="a\0b"), "NUL character"),
        (NewJob("", payload="{}"), "kind is 1 to 128"),
    ],
)
async def test_the_enqueue_function_refuses_the_same(
    job: NewJob, message: str, database: Connection
) -> None:
    with pytest.raises(EnqueueError, match=message):
        await client_calls.enqueue_job(database, job, "exists")


@pytest.mark.parametrize(
    "job", [NewJob("work", priority=99_999), NewJob("work", max_attempts=99_999), NewJob("a b")]
)
async def test_one_bad_job_refuses_the_whole_batch_in_one_line(
    job: NewJob, database: Connection
) -> None:
    with pytest.raises(RunnerError) as refusal:
        await client_calls.enqueue_many(database, [NewJob("work"), job], "exists")
    assert "\n" not in str(refusal.value)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_no_job_is_live_and_finished(database: Connection) -> None:
    job = await enqueue(database)
    with pytest.raises(
        asyncpg.CheckViolationError, match="jobs_live_states_are_queued_and_running"
    ):
        await database.execute(
            "UPDATE hybrid_runner.jobs SET state = 'completed' WHERE id = $1", job
        )
