"""The storage calls of a heartbeat: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.model.messages import Proof
from hybrid_runner.model.news import HeartbeatNews
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.heartbeat_answer import parse


async def beat(
    on: Fetches,
    worker_id: str,
    first_claim: int,
    running_by_queue: str = "{}",
    longest_gap: timedelta = timedelta(seconds=15),
) -> bool:
    """Say that this worker lives; False: others declared it dead, or another took its name.

    `running_by_queue` is JSON text. After a silence longer than `longest_gap` the worker judges
    nobody for a lease.
    """
    return bool(await fetch(on, "beat", worker_id, first_claim, running_by_queue, longest_gap))


async def send_proof(on: Fetches, proof_channel: str) -> bool:
    """Send a notification that the worker's listener must hear; False: there is no room for it."""
    return bool(await fetch_value(on, "send_proof", proof_channel, Proof().text))


async def ask_news(
    on: Fetches,
    worker_id: str,
    first_claim: int,
    running: Sequence[tuple[int, int]] = (),
    timeout_grace: timedelta = timedelta(seconds=30),
    duties: Sequence[str] = (),
    shortest_lease: timedelta = timedelta(0),
) -> list[HeartbeatNews]:
    """What this worker may have missed, what it should do, and who else lives.

    `running` are ids and claims, `duties` what this worker can be given to do. It judges no worker
    whose lease is shorter than `shortest_lease`.
    """
    ids, claims = [job_id for job_id, _ in running], [claim for _, claim in running]
    rows = await fetch(
        on, "ask_news", worker_id, first_claim, ids, claims, timeout_grace, duties, shortest_lease
    )
    return [parse(*row) for row in rows]


async def ask_queues(
    on: Fetches, queues: Sequence[str], lookback: timedelta
) -> list[HeartbeatNews]:
    """Of each queue whether a mute ran out, since when jobs wait that nobody took, and when the
    next one is due. Jobs that were due for longer than `lookback` are left out.
    """
    return [parse(*row) for row in await fetch(on, "ask_queues", queues, lookback)]
