"""Many queues fall asleep at once: few statements, and each returns after its own row is there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.worker.sleepers import Sleepers


class SlowListener:
    """A listener's session whose statements are answered when they are let go."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()
        self.fails = 0

    async def fetch(self, _query: str, /, *args: Any) -> Any:
        self.asked.append(args[0])
        self.begun.set()
        await self.let_go.wait()
        if self.fails:
            self.fails -= 1
            raise DatabaseUnavailable("lost")
        return [[None]]


async def test_queues_that_ask_while_a_statement_is_on_its_way_share_the_next() -> None:
    listener = SlowListener()
    sleepers = Sleepers(listener)
    first = asyncio.create_task(sleepers.join("first"))
    await listener.begun.wait()
    names = [f"queue-{number:03}" for number in range(1000)]
    others = [asyncio.create_task(sleepers.join(name)) for name in names]
    await asyncio.sleep(0)
    assert not any(task.done() for task in others)
    listener.let_go.set()
    await asyncio.gather(first, *others)
    assert listener.asked == [["first"], names]


async def test_a_statement_that_fails_is_tried_by_each_that_waited_for_it() -> None:
    listener = SlowListener()
    sleepers = Sleepers(listener)
    first = asyncio.create_task(sleepers.join("first"))
    await listener.begun.wait()
    others = [asyncio.create_task(sleepers.join(name)) for name in ("a", "b", "c")]
    await asyncio.sleep(0)
    listener.fails = 2
    listener.let_go.set()
    with pytest.raises(DatabaseUnavailable):
        await first
    results = await asyncio.gather(*others, return_exceptions=True)
    assert [type(result) for result in results] == [DatabaseUnavailable, type(None), type(None)]
    assert listener.asked == [["first"], ["a", "b", "c"], ["b", "c"]]


async def test_one_that_is_cancelled_leaves_the_others_their_turn() -> None:
    listener = SlowListener()
    sleepers = Sleepers(listener)
    first = asyncio.create_task(sleepers.join("first"))
    await listener.begun.wait()
    first.cancel()
    other = asyncio.create_task(sleepers.join("other"))
    listener.let_go.set()
    await other
    assert listener.asked == [["first"], ["other"]]
    assert first.cancelled()
