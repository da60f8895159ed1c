"""Each registration of a worker brings it numbers of its own for its claims."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import KINDS, enqueue, living

Another = Callable[[], Awaitable[Connection]]


CLAIMS_OF_A_WORKER = 5 * 10**10
"""Numbers that one registration is good for."""


async def test_no_two_registrations_share_a_claim_number(
    database: Connection, another: Another
) -> None:
    """A4: a worker that comes back under its old name must not repeat a claim of its
    former life.
    """
    firsts = [await living(database, worker_id) for worker_id in ("a", "b", "a", "a")]
    await worker_calls.retire_worker(database, "a", firsts[-1], in_order=True)
    firsts.append(await living(database, "a"))
    lost = (
        database.transaction()
    )  # it never learns that it is registered, or has heard it and goes on
    await lost.start()
    firsts.append(await living(database, "c"))
    await lost.rollback()
    firsts.append(await living(database, "c"))
    connections = [await another() for _ in range(4)]
    firsts += await asyncio.gather(*(living(connection, "together") for connection in connections))

    firsts.sort()
    assert (
        firsts[0] >= CLAIMS_OF_A_WORKER
    )  # below are those of the days when each claim took its own
    apart = [after - before for before, after in itertools.pairwise(firsts)]
    assert min(apart) >= CLAIMS_OF_A_WORKER


async def test_the_last_claim_number_of_many_registrations_is_a_bigint(
    database: Connection,
) -> None:
    await database.execute(
        "SELECT setval('hybrid_runner.claims', 50000000)"
    )  # registrations: one a second for a year and a half
    number = await living(database, "a") + CLAIMS_OF_A_WORKER - 1
    job = await enqueue(database)
    taken = await claim_calls.claim_jobs(database, "default", KINDS, 1, "a", number)
    assert [(c.id, c.number) for c in taken.claims] == [(job, number)]
    assert await claim_calls.finish_jobs(
        database, [Finished(taken.claims[0], State.COMPLETED)]
    ) == {job}
