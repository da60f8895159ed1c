"""Signals at random moments, while connections are cut: none is lost, and none is given twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner import Job, Repeat, RetryPolicy, Runner, Snooze
from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support import inside
from tests.support.waiting import until
from tests.support.working import runner

KEYS = [f"key:{number}" for number in range(10)]
JOBS, SIGNALS = 40, 200
QUICK = RetryPolicy(timedelta(milliseconds=10), timedelta(milliseconds=50))
GOT = "SELECT id, key, data FROM hybrid_runner.jobs WHERE kind = 'gather'"
TAKEN = """
    SELECT j.id, j.key, (
        SELECT jsonb_agg(s.payload)
        FROM hybrid_runner.waits AS w JOIN hybrid_runner.signals AS s ON s.id = w.signal_id
        WHERE w.job_id = j.id
    ) AS data
    FROM hybrid_runner.jobs AS j WHERE j.kind = 'gather'
"""
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'hybrid-runner _%' AND random() < 0.3"
)


def gathering(dsn: str, *, repeats: bool = False) -> Runner:
    """A kind whose jobs note each signal of their key in their memory, and wait again."""
    app = runner(dsn, poll_base="100ms", poll_cap="500ms", heartbeat="500ms", lease="10s")

    @app.job("gather", timeout="10s", max_attempts=1000, retry=QUICK)
    async def gather(payload: dict[str, str], job: Job) -> Any:
        got: list[int] = list(job.data or [])
        if job.signalled is not None:
            got.append(job.signalled)
        if random.random() < 0.1:
            raise ValueError("it failed after it was given a signal")
        pause = random.choice([0.01, 0.1, 1, 3600])
        if repeats:
            return Repeat(pause, wake_on=payload["key"])
        return Snooze(pause, wake_on=payload["key"], data=got)

    return app


async def send(sender: Connection, keys: list[str], sent: dict[str, list[int]]) -> None:
    """Signals, some in transactions that stay open for a while, or are undone."""
    for number, key in enumerate(keys):
        payload = id(sent) % 1000 * 1000 + number
        way = random.random()
        with contextlib.suppress(ZeroDivisionError):
            async with sender.transaction():
                await sender.fetchval("SELECT hybrid_runner.signal($1, $2)", key, str(payload))
                await asyncio.sleep(random.random() * (0.3 if way < 0.3 else 0.01))
                if way > 0.9:
                    raise ZeroDivisionError
            sent[key].append(payload)


@pytest.mark.parametrize(
    ("seed", "repeats"), [pytest.param(1, False, id="snooze"), pytest.param(2, True, id="repeat")]
)
async def test_no_signal_is_lost_or_given_twice_whatever_happens(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch, seed: int, *, repeats: bool
) -> None:
    """B16: 200 signals, before, during and after waits; time-outs, failures, cancels, retries, cut
    connections.
    """
    random.seed(seed)
    inside.make_outages_short(monkeypatch)
    sent: dict[str, list[int]] = {key: [] for key in KEYS}
    keys = [random.choice(KEYS) for _ in range(SIGNALS)]
    apps = [gathering(dsn, repeats=repeats) for _ in range(3)]
    sender = await connect(dsn)
    async with contextlib.AsyncExitStack() as stack:
        for app in apps:
            await stack.enter_async_context(app)
        payloads = [{"key": KEYS[number % len(KEYS)]} for number in range(JOBS)]
        jobs = await apps[0].enqueue_many("gather", payloads)
        key_of = {job.id: payload["key"] for job, payload in zip(jobs, payloads, strict=True)}
        for app in apps:
            await stack.enter_async_context(app.worker({"default": 10}))
        sending = asyncio.ensure_future(send(sender, keys, sent))
        cancelled = random.sample([job.id for job in jobs], 5)
        while not sending.done():
            await asyncio.sleep(0.3)
            with contextlib.suppress(asyncpg.PostgresError, RunnerError):
                await database.execute(CUT)
            if cancelled:
                with contextlib.suppress(RunnerError):
                    await apps[0].cancel(cancelled.pop())
        await sending
        live = {row["id"] for row in await database.fetch(GOT)}
        assert len(live) >= JOBS - 5

        async def missing() -> dict[int, Counter[int]]:
            rows = await database.fetch(TAKEN if repeats else GOT)
            short = {
                row["id"]: Counter(sent[key_of[row["id"]]]) - Counter(_numbers(row["data"]))
                for row in rows
            }
            return {job_id: lacking for job_id, lacking in short.items() if lacking}

        await until(missing, lambda found: not found, patience=150)
        for row in await database.fetch(TAKEN if repeats else GOT):
            assert Counter(_numbers(row["data"])) == Counter(sent[key_of[row["id"]]]), row["id"]
    await sender.close()


def _numbers(data: Any) -> list[int]:
    return list(json.loads(data)) if isinstance(data, str) else list(data or [])
