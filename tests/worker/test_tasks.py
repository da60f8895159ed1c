"""The background tasks of a worker."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hybrid_runner.worker.tasks import Tasks

SOON = timedelta(milliseconds=1)


async def test_what_is_called_again_and_again_goes_on_after_a_failure_and_a_cancellation() -> None:
    """A handler may cancel all tasks; a heartbeat that failed is due again as soon as ever."""
    tasks, calls, often = Tasks(lambda: "one"), list[str](), asyncio.Event()

    async def call() -> None:
        calls.append("call")
        if len(calls) == 1:
            raise OSError("lost")
        if len(calls) == 2:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await asyncio.Event().wait()
        often.set()

    tasks.every("it", SOON, call)
    await often.wait()
    await tasks.end("")
    assert len(calls) >= 3


async def test_nothing_is_called_again_after_the_end() -> None:
    tasks, called, cancelled = Tasks(lambda: "one"), asyncio.Event(), asyncio.Event()

    async def call() -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tasks.every("it", SOON, call)
    await called.wait()
    await tasks.end("claimer")
    assert not cancelled.is_set(), "only some were ended"
    await tasks.end("")
    assert cancelled.is_set()
