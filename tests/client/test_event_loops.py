"""A runner outlives its event loops, and says so when it is used in the wrong one."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine
from typing import Any

import psycopg
import pytest

from hybrid_runner import OpenInAnotherLoop, Runner, RunnerError
from tests.support.proxy import Proxy
from tests.support.waiting import equals, until, wait_until
from tests.support.working import runner, working

OF_THE_CLIENT = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hybrid-runner' AND datname ="
    " current_database()"
)


def app_with_hello(dsn: str) -> Runner:
    """A runner with one handler."""
    app = runner(dsn)

    @app.job("hello")
    async def hello(payload: str) -> str:
        return f"hello {payload}"

    return app


async def hello(app: Runner) -> Any:
    """Enqueue, work and wait."""
    async with app.worker():
        return await (await app.enqueue("hello", "world")).wait(120)


def by_hand(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it in a loop that is closed without any ceremony."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def test_a_runner_works_in_one_event_loop_after_the_other(dsn: str) -> None:
    app = app_with_hello(dsn)

    async def main() -> Any:
        async with app:
            return await hello(app)

    assert [asyncio.run(main()) for _ in range(3)] == ["hello world"] * 3


def test_a_runner_that_nobody_closed_works_in_the_next_event_loop(dsn: str) -> None:
    app = app_with_hello(dsn)

    async def main() -> Any:
        await app.open()
        return await hello(app)

    assert [asyncio.run(main()) for _ in range(3)] == ["hello world"] * 3
    jobs = [asyncio.run(app.enqueue("hello", "x")).id for _ in range(3)]
    assert len(set(jobs)) == 3
    asyncio.run(app.close())


def test_the_first_calls_of_each_event_loop_may_come_together(dsn: str) -> None:
    app = app_with_hello(dsn)

    async def together() -> list[Any]:
        async def one() -> Any:
            return await (await app.enqueue("hello", "world")).wait(120)

        async with app.worker():
            return await asyncio.gather(*(one() for _ in range(3)))

    for _ in range(2):  # nobody closes it
        assert asyncio.run(together()) == ["hello world"] * 3


def until_no_session_is_left(dsn: str) -> None:
    """A session may still be shown for a moment after it was told to end."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        wait_until(lambda: connection.execute(OF_THE_CLIENT).fetchone(), equals((0,)))


def test_the_end_of_an_event_loop_leaves_no_connection_behind(dsn: str) -> None:
    app = app_with_hello(dsn)
    asyncio.run(app.enqueue("hello", "x"))
    until_no_session_is_left(dsn)


@pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning"
)  # the loop was closed over open transports: that is the point
def test_a_loop_that_was_closed_without_ceremony_does_no_harm_either(dsn: str) -> None:
    app = app_with_hello(dsn)
    by_hand(app.enqueue("hello", "x"))
    by_hand(app.enqueue("hello", "x"))
    by_hand(app.close())
    until_no_session_is_left(dsn)
    gc.collect()


def test_a_runner_can_be_closed_although_its_event_loop_is_gone(dsn: str) -> None:
    app = app_with_hello(dsn)

    async def abandoned() -> None:
        await app.open()
        with pytest.raises(TimeoutError):
            await (await app.enqueue("hello", "x", delay="1h")).wait(0.1)

    asyncio.run(abandoned())
    asyncio.run(app.close())
    app.use(slots=3)
    asyncio.run(app.enqueue("hello", "x"))


def test_a_runner_that_could_not_be_opened_is_bound_to_no_event_loop(dsn: str) -> None:
    app = runner("postgresql://nobody@127.0.0.1:1/nowhere")
    first = asyncio.new_event_loop()
    try:
        with pytest.raises(RunnerError, match="does not answer"):
            first.run_until_complete(app.enqueue("hello"))
        with pytest.raises(RunnerError, match="does not answer"):
            first.run_until_complete(app.handle(1).wait(5))
        app.use(dsn=dsn)
        asyncio.run(app.enqueue("hello"))
    finally:
        first.close()


CALLS = {
    "open": lambda app: app.open(),
    "enqueue": lambda app: app.enqueue("hello", "x"),
    "enqueue_many": lambda app: app.enqueue_many("hello", ["x"]),
    "get": lambda app: app.get(1),
    "list_jobs": lambda app: app.list_jobs(),
    "cancel": lambda app: app.cancel(1),
    "retry": lambda app: app.retry(1),
    "amend": lambda app: app.amend(1, version=1),
    "pause": lambda app: app.pause("default"),
    "resume": lambda app: app.resume("default"),
    "prune": lambda app: app.prune(),
    "close": lambda app: app.close(),
    "handle.wait": lambda app: app.handle(1).wait(120),
    "handle.get": lambda app: app.handle(1).get(),
    "handle.cancel": lambda app: app.handle(1).cancel(),
}


@pytest.mark.parametrize("name", CALLS)
async def test_use_from_another_living_loop_is_refused_in_one_line(name: str, dsn: str) -> None:
    async with app_with_hello(dsn) as app:
        with pytest.raises(
            OpenInAnotherLoop, match="open in another event loop: use it there"
        ) as refusal:
            await asyncio.to_thread(asyncio.run, CALLS[name](app))
        assert "\n" not in str(refusal.value)
        assert (await app.enqueue("hello", "x")).enqueued == "inserted"  # and here it goes on


async def test_a_plain_handler_enqueues_with_a_runner_of_its_own_and_the_error_names_it(
    dsn: str,
) -> None:
    app = app_with_hello(dsn)

    @app.job("plain")
    def plain(payload: dict[str, int]) -> list[str]:
        async def own() -> str:
            async with Runner(app.dsn) as own:
                return (await own.enqueue("hello", "x")).enqueued

        try:
            asyncio.run(app.enqueue("hello", "x"))
        except OpenInAnotherLoop as error:
            return [asyncio.run(own()), str(error)]
        return []

    async with working(app):
        enqueued, refusal = await (await app.enqueue(plain, {})).wait(120)
    assert enqueued == "inserted"
    assert "in a plain `def` handler: `async with Runner(app.dsn) as own`" in refusal


def test_of_two_threads_that_begin_at_once_one_is_served_and_the_other_refused(dsn: str) -> None:
    app = app_with_hello(dsn)
    begin, end = threading.Barrier(2), threading.Barrier(2)
    said: list[str] = []

    async def enqueue() -> None:
        begin.wait(120)
        try:
            said.append((await app.enqueue("hello", "x")).enqueued)
        except RunnerError as error:
            said.append(type(error).__name__)
        end.wait(120)  # both loops live until both were answered

    threads = [threading.Thread(target=asyncio.run, args=(enqueue(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(said) == ["OpenInAnotherLoop", "inserted"]


async def test_a_watcher_that_is_killed_takes_its_waiters_along(dsn: str) -> None:
    async with app_with_hello(dsn) as app:
        handle = await app.enqueue("hello", "x", delay="1h")
        waiting = asyncio.create_task(handle.wait())
        [watcher] = await until(
            lambda: [
                task for task in asyncio.all_tasks() if task.get_name() == "hybrid-runner watcher"
            ]
        )
        watcher.cancel()
        with pytest.raises(RunnerError, match="was cancelled"):
            await asyncio.wait_for(waiting, 120)
        with pytest.raises(TimeoutError):  # the next one waits again
            await handle.wait(0.1)


async def test_closing_ends_waits_and_leaves_the_runner_openable(dsn: str) -> None:
    app = app_with_hello(dsn)
    for _ in range(2):
        handle = await app.enqueue("hello", "x", delay="1h")
        waiting = asyncio.create_task(handle.wait())
        await asyncio.sleep(0)
        await app.close()
        with pytest.raises(RunnerError, match="the runner was closed while this job was awaited"):
            await waiting


async def test_closing_comes_to_its_end_while_postgres_is_silent(dsn: str) -> None:
    async with Proxy(dsn) as proxy:
        app = app_with_hello(proxy.dsn)
        await app.enqueue("hello", "x")
        proxy.freeze(newcomers=True)
        waiting = asyncio.create_task(app.enqueue("hello", "x"))
        await asyncio.sleep(0)
        async with asyncio.timeout(120):
            await app.close()
        with pytest.raises(RunnerError):
            await waiting
        proxy.thaw()
        await app.enqueue("hello", "x")
        await app.close()
