"""What others can do to jobs of an attached table, and by way of it to jobs of others."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.attached import attach_audits
from tests.support.logins import Login, Logins
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

NEW = "INSERT INTO public.audits (website_url) VALUES ('a.example') RETURNING id"
ENDED = "SELECT count(*) FROM hybrid_runner.archive WHERE kind = $1"
STATUS = "SELECT status FROM public.audits WHERE id = $1"
HOSTILE = "1'); DROP TABLE public.audits; --"
WRITE = """
SELECT w.outcome FROM hybrid_runner.write_rows(
    1, ARRAY[7], ARRAY[$1], ARRAY[$2], ARRAY[false], ARRAY[0], ARRAY[$3], ARRAY[now()],
    ARRAY[now()], ARRAY[$4], ARRAY[$5]
) AS w
"""


async def test_a_producer_neither_chooses_a_row_nor_keeps_it_from_its_job(
    login: Logins, database: Connection
) -> None:
    await attach_audits(database)
    producer = await connect(login(Login.PRODUCER))
    for columns in ("source", "row_key", "source, row_key"):
        values = columns.replace("source", "1").replace("row_key", "'1'")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await producer.execute(
                f"INSERT INTO hybrid_runner.jobs (kind, {columns}) VALUES ('audit', {values})"
            )
    for view in ("source_1_jobs", "source_1_changes"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await producer.execute(f"INSERT INTO hybrid_runner.{view} (row_key) VALUES ('1')")
    # The same kind, payload and a likely key: that is another job.
    await producer.execute(
        "INSERT INTO hybrid_runner.jobs (kind, key, payload) VALUES ('audit', '1', '{\"id\": 1}')"
    )
    number = await database.fetchval(NEW)
    assert number == 1
    found = await database.fetch("SELECT source, row_key FROM hybrid_runner.jobs ORDER BY id")
    assert [tuple(row) for row in found] == [(None, None), (1, "1")]
    await producer.close()


@pytest.mark.parametrize("place", range(5), ids=["key", "state", "worker", "result", "error"])
async def test_text_of_a_hostile_worker_is_never_sql(
    login: Logins, database: Connection, place: int
) -> None:
    await attach_audits(database)
    await database.execute(NEW)
    await database.execute("UPDATE public.audits SET status = 'processing'")
    values = ["1", "failed" if place == 4 else "completed", "w", "{}", "[]"]
    values[place] = HOSTILE
    worker = await connect(login(Login.WORKER))
    outcome = await worker.fetchval(WRITE, *values)
    await worker.close()
    # A worker's name may be any text; anything else is refused, or no state that is known.
    assert outcome == ("written" if place in (1, 2) else "refused")
    assert await database.fetchval("SELECT count(*) FROM public.audits") == 1


async def test_a_table_that_its_application_keeps_locked_holds_up_no_jobs_of_others(
    login: Logins, database: Connection
) -> None:
    """Whoever may update a table may lock all of it."""
    await attach_audits(database)
    await database.execute(f'GRANT SELECT, UPDATE ON public.audits TO "{Login.NOBODY.role}"')
    app = runner(login(Login.WORKER))
    begun, locked = asyncio.Event(), asyncio.Event()

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None:
        begun.set()
        await locked.wait()

    @app.job("other")
    async def other(_: Any) -> None: ...

    application = await connect(login(Login.NOBODY))
    async with working(app):
        number = await database.fetchval(NEW)
        await begun.wait()
        async with application.transaction():
            await application.execute("LOCK TABLE public.audits IN ACCESS EXCLUSIVE MODE")
            locked.set()
            await app.enqueue_many("other", [{}] * 20)
            await until_fetched(database, ENDED, 20, "other")
            await until_fetched(database, ENDED, 1, "audit")
        await until_fetched(database, STATUS, "completed", number)
    await application.close()


async def test_a_key_that_is_no_key_spoils_no_other_row(
    login: Logins, database: Connection
) -> None:
    """The owner of a table may store jobs of its own source, with any key."""
    await attach_audits(database)
    app = runner(login(Login.WORKER))

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    await database.execute(
        "INSERT INTO hybrid_runner.source_1_jobs (row_key, payload) VALUES ($1, '{}')", HOSTILE
    )
    numbers = [await database.fetchval(NEW) for _ in range(5)]
    async with working(app):
        for number in numbers:
            await until_fetched(database, STATUS, "completed", number)
