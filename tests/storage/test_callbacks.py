"""Signals by callbacks, at the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from hybrid_runner.waiting.callback_tokens import Callback
from tests.support.jobs import enqueue


async def test_of_answers_that_come_together_one_counts(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Whichever worker's pages they reach."""
    jobs = [await enqueue(database) for _ in range(20)]
    pages = [await another() for _ in range(4)]
    for job in jobs:
        callback = Callback(job, "approved", b"")
        said = await asyncio.gather(
            *(signal_calls.answer_callback(page, callback, "1") for page in pages)
        )
        assert sorted(said) == ["again", "again", "again", "sent"]
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.signals") == len(jobs)


async def test_each_installation_has_a_secret_of_its_own(
    database: Connection, empty_dsn: str
) -> None:
    other = await connect(empty_dsn)
    try:
        await migrate(other)
        secret = await signal_calls.callback_secret(other)
        assert len(secret) == 32
        assert secret != await signal_calls.callback_secret(database)
        await migrate(other)
        assert secret == await signal_calls.callback_secret(other)
    finally:
        await other.close()
