"""Whoever may write the table of workers can write a row; it stops neither the heartbeats of others
nor what is read off all rows.
"""

from __future__ import annotations

import asyncpg
import pytest

from hybrid_runner.model.news import JobHung, WorkerDied
from hybrid_runner.storage import client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.beats import told
from tests.support.jobs import living, running
from tests.support.logins import Login, Logins


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("lease", "150000000 days"),
        ("lease", "0"),
        ("lease", "71000000 months -2129999999 days -24 hours"),
        ("lease", "100000000 days -2399999999 hours"),
        ("heartbeat_at", "294276-12-31"),
        ("heartbeat_at", "infinity"),
        ("suspected_at", "infinity"),
        ("dead_at", "294276-12-31"),
        ("rescued_at", "infinity"),
        ("unbroken_since", "infinity"),
        ("queues", '{"default": "abc"}'),
        ("queues", '{"default": 1.5}'),
        ("queues", '{"default": 1e300}'),
        ("queues", '{"default": [1]}'),
        ("queues", '["default"]'),
        ("queues", "7"),
        ("started_at", "infinity"),
        ("started_at", "0044-03-15 BC"),
        ("host", "x" * 2000),
        ("version", "x" * 2000),
        ("running", '{"default": -1}'),
        ("running", '"default"'),
    ],
)
async def test_a_row_that_nobody_could_read_is_refused(
    login: Logins, database: Connection, column: str, value: str
) -> None:
    await living(database)
    attacker = await connect(login(Login.WORKER))
    try:
        with pytest.raises((asyncpg.CheckViolationError, asyncpg.IntervalFieldOverflowError)):
            await attacker.execute(f"UPDATE hybrid_runner.workers SET {column} = '{value}'")
    finally:
        await attacker.close()


async def test_a_number_of_slots_that_is_written_with_a_point_is_counted(
    login: Logins, database: Connection
) -> None:
    await living(database, queues='{"default": 5}')
    attacker = await connect(login(Login.WORKER))
    await attacker.execute(
        "UPDATE hybrid_runner.workers"
        " SET queues = '{\"default\": 1.0}', running = '{\"default\": 2.00}'"
    )
    await attacker.fetchval("SELECT hybrid_runner.open_queue('default')")
    [default] = await worker_calls.scale(attacker, "default", 200)
    assert (default.slots, default.running) == (1, 2)
    await attacker.close()


@pytest.mark.parametrize("interval", ["293000 years", "-1 second", "1 year -1 day"])
async def test_how_far_ahead_a_queue_rings_is_no_way_to_stop_its_inserts(
    login: Logins, interval: str
) -> None:
    attacker = await connect(login(Login.WORKER))
    with pytest.raises(asyncpg.CheckViolationError):
        await attacker.execute(
            "SELECT hybrid_runner.open_queue('mail', $1::text::interval)", interval
        )
    await attacker.close()


async def test_turns_that_were_said_to_be_missed_do_not_keep_prune_from_counting_on(
    login: Logins, database: Connection
) -> None:
    attacker = await connect(login(Login.WORKER))
    await attacker.execute(
        "UPDATE hybrid_runner.duties SET missed_turns = 2147483647 WHERE name = 'prune'"
    )
    async with database.transaction():
        await database.execute("SELECT FROM hybrid_runner.locks WHERE name = 'prune' FOR SHARE")
        assert await attacker.fetchval("SELECT what FROM hybrid_runner.prune()") == "busy"
    await attacker.close()


async def test_a_row_from_the_far_future_counts_as_one_of_now(
    login: Logins, database: Connection
) -> None:
    """Else a worker that died would be taken for alive until then."""
    first = await living(database, "lives")
    await living(database, "dies", '{"default": 5}')
    attacker = await connect(login(Login.WORKER))
    await attacker.execute(
        "UPDATE hybrid_runner.workers SET heartbeat_at = '9998-12-31' WHERE id = 'dies'"
    )
    await attacker.close()
    assert not [one for one in await told(database, "lives", first) if isinstance(one, WorkerDied)]
    assert await database.fetchval(
        "SELECT heartbeat_at <= clock_timestamp() FROM hybrid_runner.workers WHERE id = 'dies'"
    )


async def test_a_producer_stops_no_heartbeat_with_a_time_out_that_reaches_too_far(
    login: Logins, database: Connection
) -> None:
    attacker = await connect(login(Login.PRODUCER))
    try:
        with pytest.raises(asyncpg.CheckViolationError):
            await attacker.execute(
                "INSERT INTO hybrid_runner.jobs (kind, timeout) VALUES ('work',"
                " interval '71000000 months -2130000000 days 1 hour')"
            )
    finally:
        await attacker.close()


async def test_a_job_that_never_began_is_not_hung(login: Logins, database: Connection) -> None:
    """Its row can be written by whoever may write those of workers."""
    taken = await running(database)
    first = await living(database)
    attacker = await connect(login(Login.WORKER))
    await attacker.execute(
        "UPDATE hybrid_runner.jobs SET started_at = 'infinity', timeout = interval '10 years'"
    )
    await attacker.close()
    news = await told(database, "worker-1", first, [(taken.id, taken.number)])
    assert not [one for one in news if isinstance(one, JobHung)]


@pytest.mark.parametrize("column", ["started_at", "created_at"])
@pytest.mark.parametrize("time", ["4000-01-01 BC", "200000-01-01", "infinity"])
async def test_a_lost_job_of_a_year_that_cannot_be_read_keeps_no_other_from_being_found(
    login: Logins, database: Connection, column: str, time: str
) -> None:
    odd = await running(database)
    other = await running(database)
    attacker = await connect(login(Login.WORKER))
    await attacker.execute(
        f"UPDATE hybrid_runner.jobs SET {column} = '{time}' WHERE id = $1", odd.id
    )
    await attacker.execute("UPDATE hybrid_runner.workers SET dead_at = clock_timestamp()")
    lost = await worker_calls.find_lost(attacker, 10, 0)
    assert [each.claim.id for each in lost] == [odd.id, other.id]
    await attacker.close()


@pytest.mark.parametrize("column", ["started_at", "created_at", "cancel_requested_at"])
async def test_a_job_of_a_year_that_cannot_be_read_hides_no_other_from_lists(
    login: Logins, database: Connection, column: str
) -> None:
    odd, other = await running(database), await running(database)
    attacker = await connect(login(Login.WORKER))
    await attacker.execute(
        f"UPDATE hybrid_runner.jobs SET {column} = '4000-01-01 BC' WHERE id = $1", odd.id
    )
    await attacker.close()
    assert [each.id for each in await client_calls.list_jobs(database, None, None, None, 9)] == [
        other.id,
        odd.id,
    ]
