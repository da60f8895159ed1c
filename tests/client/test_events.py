"""`Runner.events`: where a job stands, and each change of it, as an async iterator (B13)."""

from __future__ import annotations

import asyncio
import signal
from contextlib import aclosing
from typing import Any

import orjson
import pytest

from hybrid_runner import ConfigurationError, Fail, Job, JobEvent, JobNotFound, Snooze
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.stream import job_stream, reader
from tests.support.faults import own_server
from tests.support.followed import stored_by_its_end
from tests.support.streams import Stepwise
from tests.support.waiting import equals, until, until_fetched
from tests.support.working import runner, working

INSERT = "INSERT INTO hybrid_runner.jobs (kind, queue) VALUES ($1, $2) RETURNING id"
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'hybrid-runner stream'
"""


def names(events: list[JobEvent]) -> list[tuple[int, str]]:
    return [(event.job.id, event.name) for event in events]


async def test_the_stored_status_comes_at_once_then_each_change_until_the_end(
    dsn: str, database: Connection
) -> None:
    """B13"""
    steps = Stepwise(dsn)
    await database.execute("SELECT hybrid_runner.pause('default')")
    async with steps.app, working(steps.app):
        job = await database.fetchval(INSERT, "steps", "default")
        async with aclosing(steps.app.events(job)) as events:
            first = await anext(events)
            assert (first.name, first.job.id, first.job.state) == ("queued", job, "queued")
            await steps.app.resume("default")
            assert (await anext(events)).name == "running"
            steps.progress(0.5)
            progress = await anext(events)
            assert (progress.name, progress.progress["fraction"]) == ("progress", 0.5)
            assert orjson.loads(progress.as_sse().split(b"data: ")[1])["id"] == job
            steps.snooze("1h")
            snoozed = await anext(events)
            assert (snoozed.name, snoozed.job.snoozes) == ("snoozed", 1)
            assert await steps.app.retry(job) == "queued"
            steps.say(7)
            *_, last = [event async for event in events]
            assert (last.name, last.job.state, last.job.followed_by) == (
                "completed",
                "completed",
                None,
            )
        assert names([event async for event in steps.app.events(job)]) == [(job, "completed")]


async def test_whoever_asks_for_it_goes_on_with_the_jobs_that_an_end_has_stored(
    dsn: str, database: Connection
) -> None:
    """B13: and with those that their ends have stored; without, the end names them."""
    steps = Stepwise(dsn)
    async with steps.app, working(steps.app) as worker:
        first = await database.fetchval(INSERT, "steps", "default")
        second, third, fourth = [
            (await steps.app.enqueue("steps", {}, delay="1h")).id for _ in range(3)
        ]
        await stored_by_its_end(database, {first: [second, third], third: [fourth]})
        await until_fetched(
            database, "SELECT state::text FROM hybrid_runner.jobs WHERE id = $1", "running", first
        )
        seen: list[JobEvent] = []

        async def follow() -> None:
            async for event in steps.app.events(first, follow_ups=True):
                seen.append(event)  # noqa: PERF401  # whoever waits reads it while it grows

        following = asyncio.create_task(follow())
        await until(lambda: names(seen)[-1:], equals([(first, "running")]))
        steps.say(None)
        await until(lambda: len(seen), equals(4))
        assert names(seen)[1] == (first, "completed")
        assert set(names(seen)[2:]) == {(second, "queued"), (third, "queued")}
        assert seen[1].job.followed_by == [second, third]
        for number, each in enumerate((third, second, fourth), 2):
            assert await steps.app.retry(each) == "queued"
            steps.say(None)
            await worker.settled(number)
        await following
        ends = [event.job.id for event in seen if event.name == "completed"]
        assert sorted(ends) == [first, second, third, fourth]
        assert ends.index(third) < ends.index(fourth)
        alone = [event async for event in steps.app.events(first)]
        assert names(alone) == [(first, "completed")]
        assert alone[0].job.followed_by == [second, third]
        again = [event async for event in steps.app.events(first, follow_ups=True)]
        assert sorted(names(again)) == [
            (each, "completed") for each in (first, second, third, fourth)
        ]


async def test_an_outage_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A9 B13: and nothing is told twice."""
    monkeypatch.setattr(job_stream, "_LONGEST_OUTAGE_PAUSE", 0.1)
    async with own_server() as server:
        steps = Stepwise(server.dsn)
        async with steps.app, working(steps.app):
            job = await steps.app.enqueue("steps", {})
            async with aclosing(steps.app.events(job.id)) as events:
                while (await anext(events)).name != "running":
                    pass
                await server.stop(signal.SIGINT)
                await server.start()
                steps.say(None)
                assert [event.name async for event in events] == ["completed"]


async def test_a_job_that_is_not_there_is_an_error(dsn: str, database: Connection) -> None:
    steps = Stepwise(dsn)
    async with steps.app:
        with pytest.raises(JobNotFound, match="there is no job 99: "):
            await anext(steps.app.events(99))
        with pytest.raises(ConfigurationError, match="'99' is no id of a job"):
            await anext(steps.app.events("99"))  # type: ignore[arg-type]  # what is tested
        job = await database.fetchval(INSERT, "steps", "default")
        async with aclosing(steps.app.events(job)) as events:
            assert (await anext(events)).name == "queued"
            await database.execute("DELETE FROM hybrid_runner.jobs")
            with pytest.raises(JobNotFound):
                await anext(events)


async def test_closing_the_runner_ends_it_with_an_error(dsn: str, database: Connection) -> None:
    steps = Stepwise(dsn)
    async with steps.app:
        job = await database.fetchval(INSERT, "steps", "default")
        events = steps.app.events(job)
        await anext(events)
        waits = asyncio.create_task(anext(events))
        await asyncio.sleep(0)
        await steps.app.close()
        with pytest.raises(ConfigurationError, match="the runner was closed"):
            await waits


async def test_whoever_breaks_off_leaves_nothing_open(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_stream, "LINGER", 0.05)
    steps = Stepwise(dsn)
    async with steps.app:
        job = await database.fetchval(INSERT, "steps", "default")
        async for event in steps.app.events(job):
            assert event.name == "queued"
            break
        await until_fetched(database, SESSIONS, 0)


def test_each_event_loop_follows_anew(dsn: str) -> None:
    """As everything else of a runner."""
    app = runner(dsn)

    async def first_of(job_id: int | None) -> tuple[int, str]:
        async with app:
            job = job_id or (await app.enqueue("x", {}, delay="1h")).id
            return job, (await anext(app.events(job))).name

    job, name = asyncio.run(first_of(None))
    assert name == "queued"
    assert asyncio.run(first_of(job)) == (job, "queued")


async def test_whoever_is_slow_misses_what_is_over_and_no_end(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13: what waits for a program is bounded."""
    monkeypatch.setattr(reader, "BUFFER", 3)
    steps = Stepwise(dsn)
    async with steps.app, working(steps.app) as worker:
        job = await steps.app.enqueue("steps", {})
        async with (
            aclosing(steps.app.events(job.id)) as slow,
            aclosing(steps.app.events(job.id)) as quick,
        ):
            await anext(slow)
            while (await anext(quick)).name != "running":
                pass
            for tenth in range(1, 10):
                steps.progress(tenth / 10)
                while (await anext(quick)).name != "progress":
                    pass
            steps.say(None)
            await worker.settled(1)
            assert [event.name async for event in quick] == ["completed"]
            left = [event.name async for event in slow]
            assert left[-1] == "completed"
            assert len(left) <= 4


async def test_a_run_is_followed_from_its_start_to_its_clean_up(
    dsn: str, database: Connection
) -> None:
    """B1 B11 B13: what a handler has named as follow-up, and its kind as `on_end`."""
    app = runner(dsn)

    @app.job("start")
    async def start(payload: dict[str, int], job: Job) -> None:
        job.then("poll", payload, key="poll-7")

    @app.job("poll", on_end="clean-up")
    async def poll(payload: dict[str, int], job: Job) -> Snooze | Fail:
        return Snooze("50ms") if job.snoozes == 0 else Fail("it came to nothing")

    @app.job("clean-up")
    async def clean_up(payload: dict[str, Any]) -> None:
        """Nothing is left."""

    async with app, working(app):
        first = (await app.enqueue("start", {})).id
        seen = [event async for event in app.events(first, follow_ups=True)]
    told: dict[str, list[str]] = {}
    for event in seen:
        told.setdefault(event.job.kind, []).append(event.name)
    assert list(told) == ["start", "poll", "clean-up"]
    assert {kind: names[-1] for kind, names in told.items()} == {
        "start": "completed",
        "poll": "failed",
        "clean-up": "completed",
    }
    ends = {event.job.kind: event.job for event in seen if event.job.state.final}
    assert ends["start"].followed_by == [ends["poll"].id]
    assert ends["poll"].followed_by == [ends["clean-up"].id]
