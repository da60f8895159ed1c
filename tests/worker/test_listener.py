"""Listening is proved, not assumed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import pytest

from hybrid_runner.worker import listener as module
from hybrid_runner.worker.listener import Listener


class PooledEar:
    """As behind a pooler that nobody recognised: LISTEN succeeds and nothing ever arrives."""

    pooled = False

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    @classmethod
    async def open(cls, _dsn: str) -> PooledEar:
        return cls()

    async def listen(self, channel: str, heard: Callable[[str, str, int], None]) -> None:
        pass

    async def ring(self, channel: str, payload: str) -> None:
        pass

    async def close(self) -> None:
        pass


async def test_a_connection_on_which_no_ring_arrives_does_not_count_as_hearing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A3"""
    monkeypatch.setattr(module, "Ear", PooledEar)
    monkeypatch.setattr(module, "_PROOF_TIMEOUT", 0.01)
    said = asyncio.Queue[str]()

    class Tell(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.put_nowait(record.getMessage())

    tell = Tell()
    module.log.addHandler(tell)
    listener = Listener("postgresql://nobody", ["default"], lambda _queue, _payload, _pid: None, lambda: said.put_nowait("changed"))
    task = asyncio.create_task(listener.run())
    try:
        assert "rings do not arrive" in await asyncio.wait_for(said.get(), 5)
        assert not listener.hearing
    finally:
        module.log.removeHandler(tell)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_connection_that_died_without_a_word_is_given_up_once_a_ring_to_ourselves_is_missing(dsn: str) -> None:
    """A3: the driver may know that a connection is closed and yet not tell; the missing proof has to be enough."""
    changes = asyncio.Queue[bool]()
    listener = Listener(dsn, ["default"], lambda _queue, _payload, _pid: None, lambda: changes.put_nowait(listener.hearing))
    task = asyncio.create_task(listener.run())
    try:
        assert await asyncio.wait_for(changes.get(), 10)
        ear = listener._ear
        assert ear is not None
        ear._connection._termination_listeners.clear()  # type: ignore[attr-defined]  # the driver's own
        ear._connection.terminate()
        listener.expect_proof(listener.proof_channel, time.monotonic(), 0.01)
        assert not await asyncio.wait_for(changes.get(), 10)
        assert await asyncio.wait_for(changes.get(), 10)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_rings_to_ourselves_that_nobody_waited_for_make_up_for_none_that_is_missing(dsn: str) -> None:
    """A3: a heartbeat whose answer was of no use rings all the same."""
    changes = asyncio.Queue[bool]()
    listener = Listener(dsn, ["default"], lambda _queue, _payload, _pid: None, lambda: changes.put_nowait(listener.hearing))
    task = asyncio.create_task(listener.run())
    try:
        assert await asyncio.wait_for(changes.get(), 10)
        channel, ear = listener.proof_channel, listener._ear
        assert channel is not None
        assert ear is not None
        for _ in range(3):
            proved = listener._proved_at
            await ear.ring(channel, "proof")
            while listener._proved_at == proved:
                await asyncio.sleep(0.001)
        await ear._connection.execute(f'UNLISTEN "{channel}"')  # from here on nothing arrives, and nobody says so
        await ear.ring(channel, "proof")
        listener.expect_proof(channel, time.monotonic(), 0.01)
        assert not await asyncio.wait_for(changes.get(), 10)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_listener_that_is_cancelled_at_any_moment_of_its_start_ends(dsn: str) -> None:
    """A13: also when the answer that it waits for arrives at that very moment."""
    for step in range(40):
        listener = Listener(dsn, ["default", "images"], lambda _queue, _payload, _pid: None, lambda: None)
        task = asyncio.create_task(listener.run())
        await asyncio.sleep(step * 0.0005)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)
        assert done
