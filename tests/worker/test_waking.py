"""Who wakes jobs that wait for signals, and what is found when nobody was told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hybrid_runner import Job, Snooze
from hybrid_runner.model.messages import SignalSent
from hybrid_runner.policy.waking import AT_ONCE, MOST_KEYS, HeardKeys
from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.queries import query
from hybrid_runner.upkeep.duties.signals import Signals, SweepWaiting
from hybrid_runner.worker.waits.waker import Waker
from tests.storage.test_signals import DUE, OLD, SEND, waiting
from tests.support.waiting import until
from tests.support.working import runner, working

WORKERS = [f"worker-{number}" for number in range(20)]
DEAD_END = "postgresql://nobody@127.0.0.1:1/nowhere"
QUIET = "SET hybrid_runner.quiet = on"


class Asked:
    """Postgres, as far as a waker knows it: which keys it was asked about."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.sweeps = 0

    async def fetch(self, text: str, /, *args: Any) -> Any:
        if text == query("wake_by_keys"):
            self.keys += args[0]
        else:
            self.sweeps += text == query("sweep_waiting")
        return []


def fleet(asked: Sequence[Asked]) -> list[Waker]:
    """A waker for each worker."""
    return [
        Waker(each, lambda name=name: name, lambda: WORKERS, lambda: True)  # type: ignore[misc]
        for each, name in zip(asked, WORKERS, strict=True)
    ]


async def test_of_a_large_fleet_two_look_and_a_third_a_moment_later() -> None:
    asked = [Asked() for _ in WORKERS]
    wakers = fleet(asked)
    tasks = [asyncio.ensure_future(waker.run()) for waker in wakers]
    for waker in wakers:
        waker.heard(SignalSent("k"), 4711)
    await until(lambda: sum(each.keys == ["k"] for each in asked), lambda found: found == 3)
    assert sum(bool(each.keys) for each in asked) == 3
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_flood_of_keys_costs_a_bounded_number_of_statements() -> None:
    asked = Asked()
    waker = Waker(asked, str, lambda: [""], lambda: True)
    for number in range(3 * MOST_KEYS):
        waker.heard(SignalSent(f"k{number}"), 1)
    task = asyncio.ensure_future(waker.run())
    await until(lambda: asked.sweeps)
    assert len(asked.keys) == MOST_KEYS
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_keys_that_are_too_many_are_known_to_be_more() -> None:
    heard = HeardKeys()
    assert not heard
    heard.add(["a", "b", "a"])
    assert heard.take() == ["a", "b"]
    assert not heard
    heard.add([""])
    assert heard.is_sweep_due
    heard.add(map(str, range(MOST_KEYS + 1)))
    assert len(heard.take()) == AT_ONCE


async def test_a_job_whose_worker_died_before_it_looked_is_found_by_the_duty(
    database: Connection,
) -> None:
    """And so is one for whose signal nobody was rung."""
    job_id = await waiting(database)
    await database.fetchval(SEND, "k", "1")
    assert not await database.fetchval(DUE, job_id)
    duty = Signals()
    await duty.run(database)
    assert await database.fetchval(DUE, job_id)
    assert duty.found == 1


async def test_signals_that_nobody_took_are_counted_as_dropped(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B14"""
    duty = Signals()
    await database.fetchval(SEND, "nobody", "1")
    await database.execute(OLD)
    await duty.forget(database)
    assert duty.metric_values() == {"hybrid_runner_signals_dropped_total": {(): 1}}
    assert "1 signals that nobody took in 7 days were dropped" in caplog.messages


async def test_a_sweep_comes_to_all_that_wait_and_begins_anew(
    database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older than what is looked for first."""
    monkeypatch.setattr("hybrid_runner.upkeep.duties.signals._AT_ONCE", 2)
    jobs = [await waiting(database, key) for key in ("a", "b", "b", "c", "d")]
    for key in ("a", "b", "d"):
        await database.fetchval(SEND, key, "1")
    await database.execute("UPDATE hybrid_runner.signals SET sent_at = sent_at - '1 h'::interval")
    sweep = SweepWaiting()
    assert [await sweep.round(database) for _ in range(3)] == [2, 1, 1]
    assert await sweep.round(database) == 0
    due = [job for job in jobs if await database.fetchval(DUE, job)]
    assert due == [jobs[0], jobs[1], jobs[2], jobs[4]]
    await database.fetchval(SEND, "c", "1")
    await database.execute("UPDATE hybrid_runner.signals SET sent_at = sent_at - '1 h'::interval")
    assert sum([await sweep.round(database) for _ in range(3)]) == 1


@pytest.mark.parametrize("how", ["deaf", "quiet"])
async def test_a_signal_that_nobody_was_told_of_is_found(
    dsn: str, database: Connection, how: str
) -> None:
    """A2: a worker that hears nothing looks by itself; the duty finds what was not notified."""
    deaf: dict[str, Any] = {"listen_dsn": DEAD_END} if how == "deaf" else {}
    app = runner(dsn, poll_base="200ms", poll_cap="300ms", heartbeat="500ms", lease="5s", **deaf)

    @app.job("wait")
    async def wait(payload: dict[str, str], job: Job) -> Any:
        return job.signalled if job.snoozes else Snooze("1h", wake_on="k")

    async with working(app, deaf=bool(deaf)):
        handle = await app.enqueue("wait", {})
        await until(
            lambda: database.fetchval(
                "SELECT count(*) FROM hybrid_runner.jobs WHERE state = 'queued' AND waits_for = 'k'"
            )
        )
        await database.execute(QUIET)
        await signal_calls.send_signal(database, "k", "1")
        assert await handle.wait(timeout=120) == 1
