"""What an application does with stored schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Runner
from hybrid_runner.model.schedules import MOST_TICKS
from hybrid_runner.storage.connections.connection import Connection
from tests.support.scheduled import a_worker

FAR = datetime(2040, 1, 1, 12, tzinfo=UTC)


async def test_a_schedule_is_stored_looked_at_changed_and_forgotten(dsn: str) -> None:
    async with Runner(dsn) as app:
        assert await app.add_schedule("once", "work", {"n": 1}, at=FAR, priority=2) == FAR
        view = await app.get_schedule("once")
        assert view is not None
        assert (view.kind, view.at, view.next_at, view.priority) == ("work", FAR, FAR, 2)
        assert (view.payload, view.timezone, view.declared) == ({"n": 1}, "UTC", False)
        await app.add_schedule("once", "work", {"n": 2}, every="1h", overlap="queue")
        [one] = await app.schedules()
        assert (one.every, one.at, one.overlap) == (timedelta(hours=1), None, "queue")
        assert one.when == "every 1h"
        assert await app.remove_schedule("once") is True
        assert await app.remove_schedule("once") is False
        assert await app.schedules() == []
        assert await app.get_schedule("once") is None


async def test_everything_that_was_said_of_a_schedule_is_stored(dsn: str) -> None:
    said: Any = {
        "cron": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "queue": "mail",
        "priority": 1,
        "max_attempts": 3,
        "timeout": "10m",
        "overlap": "queue",
        "missed": "all",
        "catch_up": "6h",
        "jitter": "5s",
        "starts_at": FAR,
        "ends_at": FAR + timedelta(days=30),
    }
    async with Runner(dsn) as app:
        declared = app.schedule("s", "work", {"n": 1}, **said)
        await app.add_schedule("s", "work", {"n": 1}, **said)
        view = await app.get_schedule("s")
    assert view is not None
    wanted = declared._asdict() | {"payload": {"n": 1}}
    assert {name: getattr(view, name) for name in wanted} == wanted


async def test_it_is_paused_and_resumed(dsn: str) -> None:
    async with Runner(dsn) as app:
        await app.add_schedule("s", "work", every="1h")
        assert await app.pause_schedule("s") is True
        assert await app.pause_schedule("s") is False
        [one] = await app.schedules()
        assert (one.state, one.paused_at is not None) == ("paused", True)
        assert await app.resume_schedule("s") is True
        assert await app.resume_schedule("s") is False
        assert (await app.schedules())[0].paused_at is None


async def test_a_job_of_it_can_be_had_now(dsn: str) -> None:
    async with Runner(dsn) as app:
        await app.add_schedule("s", "work", {"n": 1}, every="1h", queue="mail", priority=3)
        handle = await app.run_now("s")
        job = await handle.get()
    assert (job.kind, job.payload, job.queue, job.priority) == ("work", {"n": 1}, "mail", 3)
    assert (job.schedule, job.tick) == ("s", None)


async def test_a_second_one_at_a_time_is_had_only_where_jobs_may_overlap(dsn: str) -> None:
    async with Runner(dsn) as app:
        await app.add_schedule("one", "work", every="1h")
        await app.add_schedule("many", "work", every="1h", overlap="allow")
        first, again = await app.run_now("one"), await app.run_now("one")
        assert (first.enqueued, again.enqueued, again.id) == ("inserted", "exists", first.id)
        first, other = await app.run_now("many"), await app.run_now("many")
        assert (first.enqueued, other.enqueued) == ("inserted", "inserted")
        assert first.id != other.id


async def test_the_next_ticks_are_known_with_the_jitter_of_their_jobs(dsn: str) -> None:
    async with Runner(dsn) as app:
        await app.add_schedule("s", "work", every="1h", jitter="10m", starts_at=FAR)
        ticks = await app.next_ticks("s", 3)
        assert ticks == await app.next_ticks("s", 3)
    assert len(ticks) == 3
    assert ticks[1].tick - ticks[0].tick == timedelta(hours=1)
    assert all(timedelta(0) <= each.run_at - each.tick < timedelta(minutes=10) for each in ticks)


async def test_an_expression_is_looked_at_before_it_is_stored(dsn: str) -> None:
    async with Runner(dsn) as app:
        ticks = await app.preview("0 9 * * MON-FRI", "Asia/Kolkata", 20)
        assert await app.schedules() == []
    assert len(ticks) == 20
    assert {(tick.astimezone(UTC).hour, tick.minute) for tick in ticks} == {(3, 30)}
    assert {tick.weekday() for tick in ticks} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("fields", "alive", "state", "why"),
    [
        ("declared = false", (["work"], []), "on", ""),
        ("declared = false", ([], []), "unknown kind", "no live worker knows the kind 'work'"),
        ("declared = true", (["work"], ["s"]), "on", ""),
        ("declared = true", (["work"], []), "undeclared", "declared in code, and no live"),
        ("paused_at = now()", (["work"], []), "paused", ""),
        ("next_at = now() - interval '1 h'", (["work"], []), "overdue", "its tick was not fired"),
        ("next_at = NULL", (["work"], []), "never", "it never fires again"),
    ],
)
async def test_what_keeps_it_from_firing_is_said(
    dsn: str, database: Connection, fields: str, alive: Any, state: str, why: str
) -> None:
    kinds, schedules = alive
    await a_worker(database, kinds=kinds, schedules=schedules)
    async with Runner(dsn) as app:
        await app.add_schedule("s", "work", every="1h")
        await database.execute("ALTER TABLE hybrid_runner.schedules DISABLE TRIGGER USER")
        await database.execute(f"UPDATE hybrid_runner.schedules SET {fields}")
        [one] = await app.schedules()
    assert one.state == state
    assert one.why.startswith(why)
    assert bool(one.why) == bool(why)


async def test_a_schedule_without_a_time_left_never_fires(dsn: str) -> None:
    async with Runner(dsn) as app:
        assert await app.add_schedule("s", "work", cron="0 0 30 2 *") is None
        [one] = await app.schedules()
        assert (one.state, one.next_at) == ("never", None)
        assert await app.next_ticks("s") == []


async def test_a_name_that_is_not_there_is_said(dsn: str) -> None:
    async with Runner(dsn) as app:
        for call in (app.run_now, app.next_ticks):
            with pytest.raises(ConfigurationError, match="there is no schedule 'nowhere'"):
                await call("nowhere")


@pytest.mark.parametrize("most", [0, MOST_TICKS + 1, True, "5"])
async def test_not_more_ticks_are_asked_for_than_can_be_answered(dsn: str, most: Any) -> None:
    async with Runner(dsn) as app:
        with pytest.raises(ConfigurationError, match="ask for 1 to 1,000 ticks, not"):
            await app.next_ticks("s", most)


async def test_lists_are_bounded_and_leave_payloads_behind(dsn: str, database: Connection) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.schedules (name, kind, every, payload)"
        " SELECT 's' || n, 'work', interval '1 h', to_jsonb(repeat('x', 10000))"
        " FROM generate_series(1, 30) AS n"
    )
    async with Runner(dsn) as app:
        first = await app.schedules(most=10)
        rest = await app.schedules(offset=10)
    assert (len(first), len(rest)) == (10, 20)
    names = [one.name for one in (*first, *rest)]
    assert names == sorted(names)
    assert not hasattr(first[0], "payload")
