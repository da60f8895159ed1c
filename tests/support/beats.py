"""A heartbeat and its questions, without a worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.model.news import HeartbeatNews
from hybrid_runner.policy.lookback import Lookback
from hybrid_runner.storage import heartbeat_calls
from hybrid_runner.storage.connections.connection import Connection

SHORTEST = timedelta(seconds=1)


async def beat(
    connection: Connection,
    worker_id: str,
    first_claim: int,
    running: Sequence[tuple[int, int]] = (),
    queues: Sequence[str] = (),
    duties: Sequence[str] = (),
) -> list[HeartbeatNews] | None:
    """What it brings; None: the worker was declared dead, or is another one by now."""
    if not await heartbeat_calls.beat(connection, worker_id, first_claim):
        return None
    return [
        *await heartbeat_calls.ask_news(
            connection,
            worker_id,
            first_claim,
            running,
            duties=duties,
            shortest_lease=SHORTEST,
        ),
        *await heartbeat_calls.ask_queues(connection, queues, Lookback.ALL.value),
    ]


async def told(
    connection: Connection,
    worker_id: str,
    first_claim: int,
    running: Sequence[tuple[int, int]] = (),
    queues: Sequence[str] = (),
    duties: Sequence[str] = (),
) -> list[HeartbeatNews]:
    """What it brings to a worker that lives."""
    news = await beat(connection, worker_id, first_claim, running, queues, duties)
    assert news is not None
    return news
