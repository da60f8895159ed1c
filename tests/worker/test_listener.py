"""Listening is proved, not assumed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import pytest

from hybrid_runner.model.messages import Channel, M, channel_of
from hybrid_runner.worker import listener as module
from hybrid_runner.worker.listener import Listener
from tests.support import inside


class PooledEar:
    """A connection behind an unrecognised pooler: LISTEN succeeds and nothing ever arrives."""

    pooled = False

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    @classmethod
    async def open(cls, _dsn: str) -> PooledEar:
        return cls()

    async def listen(self, channel: Channel[M], heard: Callable[[M, int], None]) -> None:
        pass

    async def may_notify(self) -> bool:
        return True

    async def send(self, _channel: Channel[M], _message: M) -> bool:
        return True

    async def close(self) -> None:
        pass


async def test_a_connection_on_which_no_ring_arrives_does_not_count_as_hearing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A3"""
    inside.listens_behind_a_pooler(monkeypatch, PooledEar)
    said = asyncio.Queue[str]()

    class Tell(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.put_nowait(record.getMessage())

    tell = Tell()
    module.log.addHandler(tell)
    listener = Listener("postgresql://nobody")
    task = asyncio.create_task(listener.run(lambda: said.put_nowait("changed")))
    try:
        assert "rings do not arrive" in await asyncio.wait_for(said.get(), 120)
        assert not listener.hearing
    finally:
        module.log.removeHandler(tell)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_connection_that_died_without_a_word_is_given_up_once_a_proof_is_missing(
    dsn: str,
) -> None:
    """A3: the driver may know that a connection is closed and yet not tell; the missing proof has
    to be enough.
    """
    changes = asyncio.Queue[bool]()
    listener = Listener(dsn)
    task = asyncio.create_task(listener.run(lambda: changes.put_nowait(listener.hearing)))
    try:
        assert await asyncio.wait_for(changes.get(), 120)
        inside.cut_in_silence(listener)
        listener.expect_proof(listener.proof_channel, time.monotonic(), 0.01)
        assert not await asyncio.wait_for(changes.get(), 120)
        assert await asyncio.wait_for(changes.get(), 120)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_rings_to_ourselves_that_nobody_waited_for_make_up_for_none_that_is_missing(
    dsn: str,
) -> None:
    """A3: a heartbeat whose answer was of no use rings all the same."""
    changes = asyncio.Queue[bool]()
    listener = Listener(dsn)
    task = asyncio.create_task(listener.run(lambda: changes.put_nowait(listener.hearing)))
    try:
        assert await asyncio.wait_for(changes.get(), 120)
        for _ in range(3):
            await inside.prove(listener)
        await inside.prove_in_vain(listener)
        listener.expect_proof(listener.proof_channel, time.monotonic(), 0.01)
        assert not await asyncio.wait_for(changes.get(), 120)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_listener_that_is_cancelled_at_any_moment_of_its_start_ends(dsn: str) -> None:
    """A13: also when the answer that it waits for arrives at that very moment."""
    for step in range(40):
        listener = Listener(dsn)
        for queue in ("default", "images"):
            listener.hear(channel_of(queue), lambda _message, _pid: None)
        task = asyncio.create_task(listener.run(lambda: None))
        await asyncio.sleep(step * 0.0005)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=30)
        assert done
