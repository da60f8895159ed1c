"""GET /metrics of a real worker on a real database: each metric follows what really happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from hybrid_runner import Cancel, Fail, Retry, Runner, Snooze, Worker, __version__
from hybrid_runner.handlers.job import Job
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from hybrid_runner.web.server import PageServer
from tests.support import inside
from tests.support.ports import free_port
from tests.support.prometheus import Promtool
from tests.support.proxy import Proxy
from tests.support.scraping import Family, page_of, parsed, scrape
from tests.support.waiting import until
from tests.support.working import runner, working

INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, payload) SELECT $1, '{}' FROM generate_series(1,"
    " $2::int)"
)


def app_of(dsn: str, **settings: Any) -> Runner:
    app = runner(dsn, **settings)

    @app.job("fine")
    async def fine(payload: Any) -> None:
        pass

    @app.job("again")
    async def again(payload: Any, job: Job) -> Retry | None:
        return Retry(after=0.01) if job.attempt == 1 else None

    @app.job("later")
    async def later(payload: Any, job: Job) -> Snooze | None:
        return None if job.data else Snooze(0.01, data={"seen": True})

    @app.job("bad")
    async def bad(payload: Any) -> Fail:
        return Fail("no")

    @app.job("off")
    async def off(payload: Any) -> Cancel:
        return Cancel("no")

    return app


@asynccontextmanager
async def served(app: Runner, **options: Any) -> AsyncIterator[tuple[Worker, int]]:
    """A worker and the port of its pages."""
    port = free_port()
    async with PageServer("127.0.0.1", port) as pages, working(app, **options) as worker:
        pages.show(worker.status)
        yield worker, port


async def until_scraped(port: int, name: str, count: float, **labels: str) -> Mapping[str, Family]:
    """Scrape until a metric has this value."""
    return await until(lambda: scrape(port), lambda families: families[name].of(**labels) == count)


async def test_every_instrument_of_the_table_appears_and_nothing_else(dsn: str) -> None:
    """A10 F6"""
    async with served(app_of(dsn)) as (_, port):
        families = parsed(await page_of(port))
        assert [(name, family.kind, family.help) for name, family in families.items()] == [
            (instrument.name, instrument.kind.value, instrument.help) for instrument in INSTRUMENTS
        ]
        for instrument in INSTRUMENTS:
            for suffix, labels in families[instrument.name].samples:
                assert {name for name, _ in labels} == {
                    *instrument.labels,
                    *(["le"] if suffix == "_bucket" else []),
                }


async def test_before_the_worker_has_started_there_is_a_page_that_says_so() -> None:
    port = free_port()
    async with PageServer("127.0.0.1", port):
        families = await scrape(port)
    assert families["workers"].of() == 0
    assert families["info"].of(version=__version__) == 1


async def test_promtool_finds_nothing_to_complain_about(
    dsn: str, database: Connection, promtool: Promtool
) -> None:
    async with served(app_of(dsn)) as (worker, port):
        await database.execute(INSERT, "fine", 3)
        await worker.settled(3)
        checked = promtool("check", "metrics", text=await page_of(port))
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


async def test_each_outcome_is_counted_once_under_its_name(dsn: str, database: Connection) -> None:
    """A10 B4 D8"""
    async with served(app_of(dsn)) as (worker, port):
        for kind, count in (("fine", 7), ("again", 1), ("later", 2), ("bad", 3), ("off", 4)):
            await database.execute(INSERT, kind, count)
        await worker.settled(17)
        families = await scrape(port)
    ran = families["run_duration_seconds"]
    assert {labels for (suffix, labels) in ran.samples if suffix == "_count"} == {
        frozenset({"kind": kind, "outcome": outcome}.items())
        for kind, outcome in (
            ("fine", "completed"),
            ("again", "retry"),
            ("again", "completed"),
            ("later", "snooze"),
            ("later", "completed"),
            ("bad", "failed"),
            ("off", "cancelled"),
        )
    }
    assert ran.of() == families["pickup_seconds"].of() == families["settle_lag_seconds"].of() == 20
    assert (
        families["retries_total"].of(),
        families["retries_total"].of(kind="again", queue="default"),
    ) == (1, 1)
    assert (families["snoozes_total"].of(), families["snoozes_total"].of(kind="later")) == (2, 2)
    assert (
        families["releases_total"].of()
        == families["stale_settles_total"].of()
        == families["rescues_total"].of()
        == 0
    )
    assert families["claim_batch_jobs"].samples["_sum", frozenset({("queue", "default")})] == 20
    assert families["looks_total"].of() == families["claim_duration_seconds"].of()
    assert families["looks_total"].of(outcome="found") <= 20
    assert families["rings_total"].of(queue="default") >= 1


async def test_what_is_so_now_is_shown_and_gone_when_it_is_over(
    dsn: str, database: Connection
) -> None:
    """A13"""
    app = app_of(dsn)
    started, may_end = asyncio.Event(), asyncio.Event()

    @app.job("long")
    async def long(payload: Any) -> None:
        started.set()
        await may_end.wait()

    async with served(app, queues={"default": 3}) as (worker, port):
        await database.execute(INSERT, "long", 1)
        await started.wait()
        families = await scrape(port)
        assert (families["slots"].of(queue="default"), families["running"].of(queue="default")) == (
            3,
            1,
        )
        assert (families["workers"].of(), families["hearing"].of(), families["stalled"].of()) == (
            1,
            1,
            0,
        )
        assert families["doorbell_mode"].of() == 1
        assert len(families["doorbell_mode"].samples) == 5
        may_end.set()
        await worker.settled(1)
        await until_scraped(port, "running", 0)


async def test_a_job_of_a_lost_worker_counts_as_rescued_and_not_as_retried(
    dsn: str, database: Connection
) -> None:
    """D5"""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, state, attempt, claim, worker_id, started_at) "
        "VALUES ('fine', 'running', 1, 1, 'gone', now()), ('fine', 'running', 5, 1, 'gone', now())"
    )
    async with served(app_of(dsn)) as (_, port):
        families = await until_scraped(port, "rescues_total", 2)
        assert families["rescues_total"].of(queue="default", outcome="retry") == 1
        assert families["rescues_total"].of(queue="default", outcome="failed") == 1
        assert families["retries_total"].of() == 0


async def test_an_outcome_that_comes_too_late_is_counted_as_stale_alone(
    dsn: str, database: Connection
) -> None:
    """A4"""
    app = app_of(dsn)
    started, may_end = asyncio.Event(), asyncio.Event()

    @app.job("slow")
    async def slow(payload: Any) -> None:
        started.set()
        await may_end.wait()

    async with served(app) as (_, port):
        await database.execute(INSERT, "slow", 1)
        await started.wait()
        await database.execute("DELETE FROM hybrid_runner.jobs")
        may_end.set()
        families = await until_scraped(port, "stale_settles_total", 1, queue="default")
        assert families["run_duration_seconds"].of() == 0


async def test_what_a_stop_gives_back_is_released(dsn: str, database: Connection) -> None:
    """D6"""
    app = app_of(dsn, grace=0.05)
    started = asyncio.Event()

    @app.job("endless")
    async def endless(payload: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    async with served(app) as (worker, port):
        await database.execute(INSERT, "endless", 1)
        await started.wait()
        await worker.stop()
        families = await scrape(port)
    assert families["releases_total"].of(kind="endless") == 1
    assert families["retries_total"].of() == 0


async def test_a_lost_listener_and_looks_that_fail_are_counted(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3 A10"""
    inside.make_outages_short(monkeypatch)
    async with (
        Proxy(dsn) as proxy,
        served(app_of(proxy.dsn, poll_base="20ms", poll_cap="20ms")) as (_, port),
    ):
        await proxy.cut()
        families = await until(
            lambda: scrape(port),
            lambda families: (
                families["consecutive_errors"].of() >= 3 and families["hearing"].of() == 0
            ),
        )
        assert families["look_errors_total"].of() >= 3
        assert families["listener_reconnects_total"].of() == 1
        await proxy.mend()
        await until_scraped(port, "hearing", 1)
        after = await until_scraped(port, "consecutive_errors", 0)
        assert after["look_errors_total"].of() >= families["look_errors_total"].of()


async def test_the_loops_lag_is_measured_and_a_stall_counted_while_the_page_answers(
    dsn: str, database: Connection
) -> None:
    """A13"""
    app = app_of(dsn, stall_after=2)  # not stopped for so long by a busy machine
    shown: list[Mapping[str, Family]] = []

    @app.job("blocking", max_attempts=1)
    async def blocking(payload: Any) -> None:
        while not shown:  # a page of another thread said so
            time.sleep(0.01)  # noqa: ASYNC251 - that is the point

    async def watch(port: int) -> None:
        shown.append(await until(lambda: scrape(port), lambda families: families["stalled"].of()))

    async with served(app) as (worker, port):
        watching = asyncio.get_running_loop().run_in_executor(
            None, lambda: asyncio.run(watch(port))
        )
        await database.execute(INSERT, "blocking", 1)
        await worker.settled(1)
        await watching
        families = await until_scraped(port, "stalled", 0)
    assert shown[0]["stalls_total"].of() == families["stalls_total"].of() == 1
    assert families["loop_lag_seconds"].of() >= 1


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_nothing_can_be_changed_there(method: str) -> None:
    port = free_port()
    async with (
        PageServer("127.0.0.1", port),
        aiohttp.ClientSession() as session,
        session.request(method, f"http://127.0.0.1:{port}/metrics") as response,
    ):
        assert response.status == 405
