"""What a tick does while the last job of its schedule still lives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.tick_clock import HOUR, MINUTE, NOON, Schedules


async def test_skip_skips_while_the_job_waits_or_runs(schedules: Schedules) -> None:
    await schedules.store(every=HOUR)
    assert await schedules.fire(NOON + HOUR) == {"fired": 1}
    assert await schedules.fire(NOON + 2 * HOUR) == {"skipped": 1}
    job = await schedules.run()
    assert await schedules.fire(NOON + 3 * HOUR) == {"skipped": 1}
    await schedules.end(job)
    assert await schedules.ticks() == []
    assert await schedules.fire(NOON + 4 * HOUR) == {"fired": 1}
    assert (await schedules.row())["skipped"] == 2


async def test_allow_lets_them_live_beside_each_other(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, overlap="allow")
    await schedules.fire(NOON + HOUR)
    assert await schedules.fire(NOON + 2 * HOUR) == {"fired": 1}
    assert await schedules.ticks() == [NOON + HOUR, NOON + 2 * HOUR]


@pytest.mark.parametrize("is_running", [False, True])
async def test_queue_lets_one_wait_and_the_end_of_the_job_stores_it(
    schedules: Schedules, is_running: bool
) -> None:
    await schedules.store(every=HOUR, overlap="queue")
    await schedules.fire(NOON + HOUR)
    if is_running:
        await schedules.run()
    assert await schedules.fire(NOON + 2 * HOUR) == {"fired": 1}
    assert await schedules.fire(NOON + 3 * HOUR) == {"skipped": 1}
    assert await schedules.ticks() == [NOON + HOUR]
    job = await schedules.run()
    await schedules.end(job)
    assert await schedules.ticks() == [NOON + 2 * HOUR]
    row = await schedules.row()
    assert (row["waiting_ticks"], row["fired"], row["skipped"]) == (None, 2, 1)
    await schedules.end(await schedules.run())
    assert await schedules.ticks() == []


async def test_queue_and_all_run_one_after_the_other_in_their_order(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, overlap="queue", missed="all")
    assert await schedules.fire(NOON + 5 * HOUR + 2 * MINUTE) == {"caught_up": 5}
    seen = []
    while ticks := await schedules.ticks():
        assert len(ticks) == 1
        seen += ticks
        await schedules.end(await schedules.run())
    assert seen == [NOON + hours * HOUR for hours in range(1, 6)]


@pytest.mark.parametrize("way", ["cancel", "fail"])
async def test_what_waits_has_its_turn_however_the_job_ends(schedules: Schedules, way: str) -> None:
    await schedules.store(every=HOUR, overlap="queue")
    await schedules.fire(NOON + HOUR)
    await schedules.fire(NOON + 2 * HOUR)
    if way == "cancel":
        await schedules.connection.execute(
            "SELECT hybrid_runner.cancel(id) FROM hybrid_runner.jobs WHERE schedule = 's'"
        )
    else:
        job = await schedules.run()
        await schedules.connection.execute(
            "SELECT hybrid_runner.end_jobs(ARRAY[$1::int8], ARRAY[$1::int8], '{failed}', '{null}',"
            " ARRAY['{}'])",
            job,
        )
    assert await schedules.ticks() == [NOON + 2 * HOUR]


async def test_what_waits_is_found_when_the_job_was_deleted_by_hand(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, overlap="queue")
    await schedules.fire(NOON + HOUR)
    await schedules.fire(NOON + 2 * HOUR)
    await schedules.connection.execute("DELETE FROM hybrid_runner.jobs")
    assert await schedules.connection.fetchval("SELECT hybrid_runner.next_tick() <= interval '0'")
    await schedules.fire()
    assert await schedules.ticks() == [NOON + 2 * HOUR]
    assert await schedules.fire() == {}


async def test_replace_cancels_a_job_that_waits(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, overlap="replace")
    await schedules.fire(NOON + HOUR)
    assert await schedules.fire(NOON + 2 * HOUR) == {"fired": 1}
    assert await schedules.ticks() == [NOON + 2 * HOUR]
    assert (
        await schedules.connection.fetchval("SELECT state::text FROM hybrid_runner.archive")
        == "cancelled"
    )


async def test_replace_asks_a_job_that_runs_to_stop_and_waits_for_its_end(
    schedules: Schedules,
) -> None:
    await schedules.worker([])
    await schedules.store(every=HOUR, overlap="replace")
    await schedules.fire(NOON + HOUR)
    job = await schedules.run()
    assert await schedules.fire(NOON + 2 * HOUR) == {"fired": 1}
    assert await schedules.fire(NOON + 3 * HOUR) == {"skipped": 1}
    assert await schedules.connection.fetchval(
        "SELECT cancel_requested_at IS NOT NULL FROM hybrid_runner.jobs WHERE id = $1", job
    )
    assert await schedules.ticks() == [NOON + HOUR]
    await schedules.end(job)
    assert await schedules.ticks() == [NOON + 3 * HOUR]


async def test_an_end_waits_for_nobody_who_holds_the_schedule(
    schedules: Schedules, another: Callable[[], Awaitable[Connection]]
) -> None:
    await schedules.store(every=HOUR, overlap="queue")
    await schedules.fire(NOON + HOUR)
    await schedules.fire(NOON + 2 * HOUR)
    job = await schedules.run()
    other = await another()
    transaction = other.transaction()
    await transaction.start()
    await other.execute("SELECT FROM hybrid_runner.schedules FOR UPDATE")
    await schedules.end(job)
    assert await schedules.ticks() == []
    await transaction.rollback()
    await schedules.fire()
    assert await schedules.ticks() == [NOON + 2 * HOUR]


async def test_while_an_end_is_not_committed_no_tick_is_put_behind_it(
    schedules: Schedules, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Whoever ends a job has looked for ticks that wait, and does not look again."""
    await schedules.store(every=HOUR, overlap="queue")
    await schedules.fire(NOON + HOUR)
    job = await schedules.run()
    other = await another()
    transaction = other.transaction()
    await transaction.start()
    await schedules.end(job, other)
    assert await schedules.fire(NOON + 2 * HOUR) == {}
    await transaction.commit()
    assert await schedules.fire() == {"fired": 1}
    assert await schedules.ticks() == [NOON + 2 * HOUR]


async def test_run_now_is_a_job_beside_its_ticks(schedules: Schedules) -> None:
    await schedules.store(every=HOUR)
    job = await schedules.connection.fetchval("SELECT hybrid_runner.run_now('s')")
    assert await schedules.ticks() == [None]
    assert await schedules.connection.fetchval("SELECT hybrid_runner.run_now('s')") == job
    assert await schedules.fire(NOON + HOUR) == {"skipped": 1}
    await schedules.store(every=HOUR, overlap="allow")
    assert await schedules.connection.fetchval("SELECT hybrid_runner.run_now('s')") != job


async def test_what_waits_stays_while_the_schedule_is_paused(schedules: Schedules) -> None:
    await schedules.store(every=HOUR, overlap="queue")
    await schedules.fire(NOON + HOUR)
    await schedules.fire(NOON + 2 * HOUR)
    await schedules.connection.execute("SELECT hybrid_runner.pause_schedule('s')")
    await schedules.end(await schedules.run())
    assert await schedules.fire() == {}
    assert await schedules.ticks() == []
    await schedules.connection.execute("SELECT hybrid_runner.resume_schedule('s')")
    await schedules.fire()
    assert await schedules.ticks() == [NOON + 2 * HOUR]
