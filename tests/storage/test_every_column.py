"""No statement on a job's way forgets a column that its producer wrote."""

from __future__ import annotations

from typing import Any

from hybrid_runner.storage.connections.connection import Connection
from tests.storage.test_producer_role import DOCUMENTED

NAMES = ", ".join(DOCUMENTED)
INSERT = f"INSERT INTO hybrid_runner.jobs ({NAMES}) VALUES ({', '.join(DOCUMENTED.values())})"
REPLACE = "SELECT hybrid_runner.enqueue_job({}, on_conflict => 'replace')".format(
    ", ".join(f"{name} => {value}" for name, value in DOCUMENTED.items())
)
END = (
    "SELECT hybrid_runner.end_jobs(array_agg(id), NULL, ARRAY['failed'], ARRAY[NULL], ARRAY[NULL])"
    " FROM hybrid_runner.jobs"
)


async def stored(database: Connection) -> dict[str, Any]:
    """What the only job has of it."""
    [row] = await database.fetch(f"SELECT {NAMES} FROM hybrid_runner.all_jobs")
    return dict(row)


async def test_a_job_has_every_column_after_its_end(database: Connection) -> None:
    await database.execute(INSERT)
    before = await stored(database)
    assert None not in before.values()
    await database.execute(END)
    assert await stored(database) == before


async def test_a_job_that_is_retried_has_every_column_but_its_times(database: Connection) -> None:
    await database.execute(INSERT)
    before = await stored(database)
    await database.execute(END)
    await database.execute("SELECT hybrid_runner.retry(id) FROM hybrid_runner.all_jobs")
    after = await stored(database)
    assert after.pop("run_at") > before.pop("run_at")
    assert after.pop("finish_by") is None
    assert before.pop("finish_by")
    assert after.pop("start_by") is None
    assert before.pop("start_by")
    assert after == before


async def test_a_job_that_is_replaced_has_every_column_of_the_new_one(
    database: Connection,
) -> None:
    async with database.transaction():  # in which now() is always the same
        await database.execute(INSERT)
        wanted = await stored(database)
        await database.execute("DELETE FROM hybrid_runner.jobs")
        await database.execute("INSERT INTO hybrid_runner.jobs (kind, key) VALUES ('work', 'key')")
        await database.execute(REPLACE)
        assert await stored(database) == wanted
