"""A worker of an attached table has the rights of a worker and none on the table."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from hybrid_runner import Job
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.attached import attach_audits
from tests.support.logins import Login, Logins
from tests.support.waiting import until_fetched
from tests.support.working import runner, working

STATUS = "SELECT status FROM public.audits WHERE id = $1"
NEW = "INSERT INTO public.audits (website_url) VALUES ('a.example') RETURNING id"


async def test_a_worker_needs_no_right_on_the_table_that_it_works_on(
    login: Logins, database: Connection
) -> None:
    """D1, D3: it reads and writes its rows by the functions that were made for it alone."""
    await attach_audits(database)
    app = runner(login(Login.WORKER), row_heartbeat="1s")

    @app.job("audit", max_attempts=2)
    async def audit(row: dict[str, Any], job: Job) -> Any:
        if job.attempt == 1:
            raise ValueError("no answer")
        return row["website_url"]

    async with working(app):
        number = await database.fetchval(NEW)
        await until_fetched(database, STATUS, "completed", number)
    worker = await connect(login(Login.WORKER))
    for statement in ("SELECT FROM public.audits", "UPDATE public.audits SET status = 'failed'"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await worker.execute(statement)
    await worker.close()


async def test_the_application_needs_no_right_in_our_schema(
    login: Logins, database: Connection
) -> None:
    """D1: whoever may insert a row has it worked on; and may do nothing else."""
    await attach_audits(database)
    await database.execute(
        f'GRANT INSERT, SELECT, UPDATE, DELETE ON public.audits TO "{Login.NOBODY.role}"'
    )
    app = runner(login(Login.WORKER))

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    application = await connect(login(Login.NOBODY))
    async with working(app):
        number = await application.fetchval(NEW)
        await until_fetched(database, STATUS, "completed", number)
        await application.execute("UPDATE public.audits SET status = 'pending'")
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.archive", 2)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await application.execute("SELECT FROM hybrid_runner.jobs")
    await application.execute("DELETE FROM public.audits")
    await application.close()
