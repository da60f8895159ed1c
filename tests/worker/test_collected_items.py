"""Jobs that share a key, from the producer to the handler."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from hybrid_runner import ConfigurationError, Job, NewJob
from tests.support.working import runner, working


@dataclass
class Change:
    """One item."""

    document: int
    what: str = "text"


async def test_a_handler_gets_the_items_as_its_annotation_says(dsn: str) -> None:
    app, got = runner(dsn), list[list[Change]]()

    @app.job("index")
    async def index(payload: list[Change]) -> int:
        got.append(payload)
        return len(payload)

    async with app:
        for document in range(3):
            handle = await app.enqueue(
                index, Change(document), key="index", on_conflict="collect", delay="1m"
            )
        await app.enqueue(
            index, [Change(3), Change(4, "title")], key="index", on_conflict="collect"
        )
    async with working(app):
        assert await handle.wait("60s") == 5
    assert got == [[Change(0), Change(1), Change(2), Change(3), Change(4, "title")]]


async def test_what_comes_while_a_run_goes_on_is_seen_by_the_next_one(dsn: str) -> None:
    app = runner(dsn)
    began, go_on = asyncio.Event(), asyncio.Event()
    seen, keys, together = list[list[int]](), list[str | None](), list[int]()

    @app.job("index")
    async def index(payload: list[int], job: Job) -> None:
        together.append(len(together) - len(seen) + 1)
        keys.append(job.key)
        began.set()
        await go_on.wait()
        seen.append(payload)

    async with working(app):
        first = await app.enqueue(index, 1, key="index", on_conflict="collect")
        await asyncio.wait_for(began.wait(), 60)
        answers = [
            await app.enqueue(index, n, key="index", on_conflict="collect") for n in range(2, 6)
        ]
        assert [handle.enqueued for handle in answers] == ["follows", *["collected"] * 3]
        waiting = await answers[0].get()
        assert (waiting.key, waiting.behind) == (">index", first.id)
        go_on.set()
        await answers[-1].wait("60s")
    assert seen == [[1], [2, 3, 4, 5]]
    assert keys == ["index", "index"]
    assert together == [1, 1]


async def test_the_last_of_many_changes_is_seen_by_a_run_that_begins_after_it(dsn: str) -> None:
    app, state = runner(dsn), {"version": 0}
    began, go_on, seen = asyncio.Event(), asyncio.Event(), list[int]()

    @app.job("reindex", unique=("document",))
    async def reindex(payload: dict[str, int]) -> None:
        version = state["version"]
        began.set()
        await go_on.wait()
        seen.append(version)

    async with working(app):
        await app.enqueue(reindex, {"document": 7}, on_conflict="follow")
        await asyncio.wait_for(began.wait(), 60)
        for version in range(1, 6):
            state["version"] = version
            last = await app.enqueue(
                reindex, {"document": 7, "version": version}, on_conflict="follow"
            )
        go_on.set()
        await last.wait("60s")
        assert (await last.get()).payload == {"document": 7, "version": 5}
    assert seen == [0, 5]


async def test_a_follow_up_has_the_key_that_its_kind_makes_and_may_be_too_late(dsn: str) -> None:
    app = runner(dsn)

    @app.job("fetch", unique=("url",))
    async def fetch(payload: dict[str, str]) -> None: ...

    @app.job("begin")
    async def begin(payload: dict[str, str], job: Job) -> None:
        job.then(fetch, payload, delay="1h")
        job.then(fetch, payload | {"again": "yes"}, delay="1h")

    async with working(app):
        handle = await app.enqueue(begin, {"url": "a"})
        await handle.wait("60s")
        stored = await app.list_jobs(kind="fetch")
        same = await app.enqueue(fetch, {"url": "a"})
    assert [job.id for job in stored] == [same.id]
    assert same.enqueued == "exists"


@pytest.mark.parametrize(
    "option", [{"on_conflict": "follow"}, {"max_wait": "1h"}, {"max_items": 5}, {"unique_for": 5}]
)
def test_what_holds_for_a_call_is_refused_for_what_follows_an_end(
    option: dict[str, object],
) -> None:
    app = runner("postgresql://nowhere/none")

    @app.job("work")
    async def work(payload: dict[str, str]) -> None: ...

    with pytest.raises(ConfigurationError, match="stored with the end of another one has no"):
        work.new({}, **option)  # type: ignore[arg-type]  # that is the point
    assert work.new({}, start_by=None) == NewJob("work", "{}", "default")
