"""An attached table beside real workers: killed, frozen, stopped. Its application only knows the
table, and all that is asked of it stands in its rows.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.attached import attach_audits
from tests.support.waiting import until, until_fetched

APP = "tests.behaviour.attached_app:app"
COUNT = "SELECT count(*) FROM public.audits WHERE status = $1"
RUNS = "SELECT count(*) FROM public.runs"


@pytest.fixture(autouse=True)
async def runs(database: Connection) -> None:
    await database.execute("CREATE TABLE public.runs (row_id bigint, pid int)")


@asynccontextmanager
async def a_worker(dsn: str, **settings: str) -> AsyncIterator[WorkerProcess]:
    """A process that hears rings."""
    given = {
        "HYBRID_RUNNER_DSN": dsn,
        "HYBRID_RUNNER_LEASE": "2s",
        "HYBRID_RUNNER_LOG_LEVEL": "info",
        "HYBRID_RUNNER_ROW_HEARTBEAT": "1s",
    } | settings
    async with worker(APP, cwd=ROOT, **given) as process:
        await process.says("listening on")
        yield process


async def rows(database: Connection, url: str, count: int = 1) -> list[int]:
    """What its application inserts."""
    found = await database.fetch(
        "INSERT INTO public.audits (website_url) SELECT $1 FROM generate_series(1, $2::int)"
        " RETURNING id",
        url,
        count,
    )
    return [each[0] for each in found]


async def row(database: Connection, number: int) -> dict[str, Any]:
    found = await database.fetchrow("SELECT * FROM public.audits WHERE id = $1", number)
    assert found is not None
    return dict(found)


@pytest.mark.parametrize("kind", ["audit", "audit_in_thread", "audit_in_process"])
async def test_three_workers_work_on_each_row_once(
    dsn: str, database: Connection, kind: str
) -> None:
    """A4, D1, D2, D7: wherever handlers run; one winner, and no two starts of a row."""
    await attach_audits(database, kind=kind)
    async with AsyncExitStack() as fleet:
        names = [f"worker-{number}" for number in range(3)]
        await asyncio.gather(
            *(
                fleet.enter_async_context(
                    # Nobody is to be taken for dead, however busy the machine is.
                    a_worker(
                        dsn, WORKER_ID=name, HYBRID_RUNNER_SLOTS="10", HYBRID_RUNNER_LEASE="60s"
                    )
                )
                for name in names
            )
        )
        await rows(database, "fine", 150)
        await until_fetched(database, COUNT, 150, "completed")
    found = await database.fetchrow(
        "SELECT count(*), count(DISTINCT row_id) AS distinct FROM public.runs"
    )
    assert found is not None
    assert tuple(found) == (150, 150)
    wrong = await database.fetch(
        "SELECT * FROM public.audits WHERE (raw_data ->> 'score')::int <> id OR retry_count <> 0"
        " OR finished_at < processing_started_at OR processing_worker_id <> ALL ($1)",
        names,
    )
    assert wrong == []


async def test_the_rows_of_a_killed_worker_are_wanted_again_and_worked_on(
    dsn: str, database: Connection
) -> None:
    """D5: SIGKILL; after its lease they show one more failed attempt, and end on another."""
    await attach_audits(database)
    async with a_worker(dsn, WORKER_ID="doomed") as doomed:
        await rows(database, "long_at_first", 20)
        await until_fetched(database, RUNS, 20)
        assert await database.fetchval(COUNT, "processing") == 20
        async with a_worker(dsn, WORKER_ID="other"):
            doomed.process.kill()
            await until_fetched(database, COUNT, 20, "completed")
    found = await database.fetch(
        "SELECT DISTINCT processing_worker_id, retry_count, raw_data -> 'attempt', error"
        " FROM public.audits"
    )
    assert [tuple(each) for each in found] == [("other", 1, "2", None)]


async def test_a_row_whose_workers_always_die_has_failed_after_three_attempts(
    dsn: str, database: Connection
) -> None:
    """D5, D7, D8: `max_attempts=3`; the row says why, the job has each error."""
    await attach_audits(database)
    [number] = await rows(database, "long")
    for attempt in (1, 2, 3):
        async with a_worker(dsn) as doomed:
            await until_fetched(database, RUNS, attempt)
            doomed.process.kill()
            await doomed.process.wait()
    async with a_worker(dsn):
        await until_fetched(database, COUNT, 1, "failed")
    failed = await row(database, number)
    assert failed["retry_count"] == 3
    assert failed["error"].startswith("worker ")
    assert failed["finished_at"] is not None
    query = "SELECT jsonb_array_length(errors) FROM hybrid_runner.archive"
    assert await database.fetchval(query) == 3


async def test_a_stop_hands_rows_back_as_wanted_and_uncharged(
    dsn: str, database: Connection
) -> None:
    """D6: the row is as it was, nobody's; the next worker takes it."""
    await attach_audits(database)
    async with a_worker(dsn, HYBRID_RUNNER_GRACE="100ms") as leaving:
        [number] = await rows(database, "long")
        await until_fetched(database, RUNS, 1)
        assert await leaving.ends() == 0
    back = await row(database, number)
    assert (back["status"], back["retry_count"]) == ("pending", 0)
    assert back["processing_worker_id"] is None
    assert back["processing_started_at"] is None
    assert back["last_heartbeat"] is None
    async with a_worker(dsn):
        await until_fetched(database, RUNS, 2)
        assert (await row(database, number))["status"] == "processing"


async def test_a_worker_that_was_frozen_past_its_lease_writes_nothing_into_its_rows(
    dsn: str, database: Connection
) -> None:
    """D5: fenced by the claim: no heartbeat, no end of an old attempt over a newer one's."""
    await attach_audits(database)
    async with a_worker(dsn, WORKER_ID="frozen") as frozen:
        [number] = await rows(database, "long_at_first")
        await until_fetched(database, RUNS, 1)
        frozen.process.send_signal(signal.SIGSTOP)
        async with a_worker(dsn, WORKER_ID="other"):
            await until_fetched(database, COUNT, 1, "completed")
            ended = await row(database, number)
            frozen.process.send_signal(signal.SIGCONT)
            await frozen.says("worker re-registered")
            [second] = await rows(database, "fine")
            await until_fetched(database, COUNT, 2, "completed")
            assert await frozen.ends() == 0
        assert await row(database, number) == ended
    assert ended["processing_worker_id"] == "other"
    assert (await row(database, second))["retry_count"] == 0


async def test_running_rows_show_a_heartbeat_until_their_worker_is_gone(
    dsn: str, database: Connection
) -> None:
    """D4: an application that only reads its table can tell."""
    await attach_audits(database)
    async with a_worker(dsn) as frozen:
        [number] = await rows(database, "long")
        await until_fetched(database, RUNS, 1)
        first = (await row(database, number))["last_heartbeat"]

        async def beat() -> Any:
            return (await row(database, number))["last_heartbeat"]

        second = await until(beat, lambda at: at > first)
        await until(beat, lambda at: at > second)
        frozen.process.send_signal(signal.SIGSTOP)


async def test_a_failing_row_is_tried_three_times_and_says_why(
    dsn: str, database: Connection
) -> None:
    """D7, D8; and what its handler gives up at once is not tried again."""
    await attach_audits(database)
    async with a_worker(dsn):
        [unreachable] = await rows(database, "unreachable")
        [no_site] = await rows(database, "no_site")
        await until_fetched(database, COUNT, 2, "failed")
    failed, refused = await row(database, unreachable), await row(database, no_site)
    assert (failed["retry_count"], failed["error"]) == (3, "nobody listens")
    assert (refused["retry_count"], refused["error"]) == (1, "that is no site")
    assert await database.fetchval(RUNS) == 4
