"""`job.callback_url`: what a handler gives to somebody who has no login."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hybrid_runner import Job, JobFailed, Snooze
from hybrid_runner.storage.connections.connection import Connection
from tests.support.streams import Pages, served
from tests.support.waiting import until_fetched
from tests.support.working import runner
from tests.worker.callback_handlers import app, ask_in_loop

WAITS = "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for IS NOT NULL"
URL = "SELECT data->>'url' FROM hybrid_runner.jobs WHERE id = $1"


@pytest.mark.parametrize("kind", ["ask_in_loop", "ask_in_thread", "ask_in_process"])
async def test_a_handler_gives_a_url_away_that_wakes_its_job_once(
    kind: str, dsn: str, database: Connection
) -> None:
    """Wherever the handler runs."""
    app.use(dsn)
    async with served(app) as (client, _):
        first, second = [(await app.enqueue(kind, {})).id for _ in range(2)]
        await until_fetched(database, WAITS, 2)
        path = await database.fetchval(URL, first)
        assert path != await database.fetchval(URL, second)
        for status in (202, 200):
            async with client.session.post(path, json={"by": "ada"}) as response:
                assert response.status == status
        assert await app.handle(first).wait(120) == {"said": {"by": "ada"}, "timed_out": False}
        assert await database.fetchval(WAITS) == 1
        async with client.session.post(path, json={"by": "ada"}) as response:
            assert response.status == 404


async def test_a_url_begins_with_the_address_that_others_know(
    dsn: str, database: Connection
) -> None:
    public = runner(dsn, http_url="https://jobs.example.org/runs/")
    public.job("ask")(ask_in_loop.function)
    async with served(public) as (client, _):
        job = (await public.enqueue("ask", {})).id
        await until_fetched(database, WAITS, 1)
        url = await database.fetchval(URL, job)
        assert url.startswith("https://jobs.example.org/runs/signals/")
        path = url.removeprefix("https://jobs.example.org/runs")
        async with client.session.post(
            path, data=json.dumps(1), headers={"Host": "jobs.example.org"}
        ) as response:
            assert response.status == 202
        assert (await public.handle(job).wait(120))["said"] == 1


async def test_an_answer_that_comes_before_the_job_waits_is_kept(dsn: str) -> None:
    """Somebody was quicker than the handler."""
    quick = runner(dsn)
    outside: list[Pages] = []

    @quick.job("ask-and-wait")
    async def ask_and_wait(_: Any, job: Job) -> Any:
        if job.snoozes:
            return job.signalled
        async with outside[0].session.post(job.callback_url("approved"), json=7) as response:
            assert response.status == 202
        return Snooze("1h", wake_on=f"approved:{job.id}")

    async with served(quick) as (client, _):
        outside.append(client)
        assert await (await quick.enqueue("ask-and-wait", {})).wait(120) == 7


async def test_a_name_that_cannot_be_fails_the_job_in_one_line(dsn: str) -> None:
    app.use(dsn)
    async with served(app):
        job = await app.enqueue("ask_by_a_wrong_name", {})
        with pytest.raises(JobFailed, match="'approved:7' is no name of a callback: use 1 to 64"):
            await job.wait(120)
