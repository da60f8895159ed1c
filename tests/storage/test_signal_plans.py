"""What signals cost beside many jobs that do not wait, and many signals of other keys."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING
from tests.storage.test_plans import explain
from tests.support.server import Databases

FILL = """
INSERT INTO hybrid_runner.jobs (kind, run_at)
SELECT 'work', now() - make_interval(secs => n) FROM generate_series(1, 100000) AS n;
INSERT INTO hybrid_runner.waits (job_id, run, key, wake_of, signal_id)
SELECT n, now(), 'k', n % 100, -n FROM generate_series(1, 50000) AS n;
INSERT INTO hybrid_runner.jobs (kind, run_at, waits_for, began_at)
SELECT 'work', 'infinity', 'k' || n, now() FROM generate_series(2500, 12499) AS n;
INSERT INTO hybrid_runner.signals (key, newest_job)
SELECT 'k' || n % 5000, q.last_value
FROM generate_series(1, 50000) AS n, hybrid_runner.jobs_id_seq AS q;
INSERT INTO hybrid_runner.signals (key) SELECT 'k' || n FROM generate_series(1, 50) AS n;
"""
BLOCKS = 60
"""That one job may touch, whatever else is stored: some indexes, and what wakes it."""


@pytest.fixture(scope="module", params=["fresh statistics", "statistics of empty tables"])
def full(request: pytest.FixtureRequest, databases: Databases, template: str) -> Iterator[str]:
    """A database with much in it; autovacuum may not have looked at it."""
    with databases.fresh(template) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ANALYZE")
            connection.execute(FILL)
            if request.param == "fresh statistics":
                connection.execute("ANALYZE")
        yield dsn


async def test_what_a_job_was_given_before_is_passed_over_quickly(full: str) -> None:
    """It was given 3,000 signals of one key: some pages for each of them, not all of them for
    each.
    """
    connection = await connect(full, FOR_SETTLING)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(
        "UPDATE hybrid_runner.jobs SET state = 'running', claim = 7, started_at = now(),"
        " waits_for = 'many' WHERE id = 60"
    )
    await connection.execute(
        "INSERT INTO hybrid_runner.signals (key) SELECT 'many' FROM generate_series(1, 3001)"
    )
    await connection.execute(
        "INSERT INTO hybrid_runner.waits (job_id, run, key, signal_id) SELECT 60, now(), key, id"
        " FROM hybrid_runner.signals WHERE key = 'many' ORDER BY id LIMIT 3000"
    )
    plan = await explain(connection, "take_signals", "int8[], int8[]", "ARRAY[60], ARRAY[7]")
    blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    await transaction.rollback()
    await connection.close()
    assert plan["Actual Rows"] == 1
    assert blocks <= 10 * 3000, plan


@pytest.mark.parametrize(
    ("name", "types", "arguments", "jobs"),
    [
        ("wake_by_keys", "text[], int8", "ARRAY['k4000', 'k4001'], 500", 2),
        ("wake_by_keys", "text[], int8", "ARRAY['nobody'], 500", 1),
        ("wake_waiting", "int8[]", "ARRAY[110000, 109999]", 2),
        ("sweep_waiting", "text, int8, int8", "'k9', 0, 100", 100),
        ("take_signals", "int8[], int8[]", "ARRAY[1, 2], ARRAY[7, 7]", 2),
        ("take_signal", "int8, int8, text, int4", "1, 7, 'k44', 1", 1),
        ("number_signals", "int8", "20", 20),
        ("recent_keys", "interval, int8", "'1 day', 50", 50),
        ("forget_signals", "interval, int8", "'1 microsecond', 20", 20),
        ("forget_waits", "interval, int8", "'1 microsecond', 20", 20),
    ],
)
async def test_a_statement_touches_what_it_is_about(
    name: str, types: str, arguments: str, jobs: int, full: str
) -> None:
    """A8"""
    connection = await connect(full, FOR_SETTLING)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(
        "UPDATE hybrid_runner.jobs SET state = 'running', claim = 7, started_at = now(),"
        " waits_for = 'k' || id WHERE id <= 50"
    )
    # The first call plans the statements of functions; it reads the catalogue.
    await explain(connection, name, types, arguments)
    plan = await explain(connection, name, types, arguments, prepare=False)
    blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    await transaction.rollback()
    await connection.close()
    assert 0 < blocks <= BLOCKS * (jobs + 2), plan
