"""Jobs that others end: what follows them is stored all the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, client_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.rescuer import Rescuer
from tests.support.jobs import KINDS, enqueue, living


@pytest.fixture
async def prepared(database: Connection) -> Connection:
    """A database in which `work` has an `on_end`."""
    await database.execute(
        "INSERT INTO hybrid_runner.kinds (name, queue, on_end)"
        " VALUES ('work', 'default', 'clean-up')"
    )
    return database


async def told(connection: Connection) -> list[tuple[int, str, str | None]]:
    """What jobs of kind `clean-up` are told: whose end, the state, the reason."""
    rows = await connection.fetch(
        "SELECT payload ->> 'id' AS id, payload ->> 'state' AS state, payload ->> 'reason' AS"
        " reason FROM hybrid_runner.jobs WHERE kind = 'clean-up' ORDER BY id"
    )
    return [(int(row["id"]), row["state"], row["reason"]) for row in rows]


def knowing_work() -> Registry:
    """The kinds of a worker that knows `work` as the database does."""
    app = Runner("postgresql://nobody@127.0.0.1:1/nothing")

    @app.job("work", on_end="clean-up")
    async def work(_: Any) -> None: ...

    return app.registry


@pytest.mark.parametrize("knows", [True, False])
async def test_a_job_whose_last_attempt_died_with_its_worker_has_its_clean_up(
    knows: bool, prepared: Connection
) -> None:
    """B11, B16: also where whoever rescues does not know the kind."""
    job = await enqueue(prepared, max_attempts=1)
    again = await enqueue(prepared, max_attempts=2)
    await claim_calls.claim_jobs(prepared, "default", KINDS, 2, "gone", 1)
    rescuer = Rescuer(knowing_work() if knows else Registry())
    await rescuer.rescue(prepared)
    [(ended, state, reason)] = await told(prepared)
    assert (ended, state) == (job, "failed")
    assert "worker gone is gone" in (reason or "")
    assert (await client_calls.get_job(prepared, again)).state == "queued"  # type: ignore[union-attr]


async def test_a_hung_job_that_is_taken_from_its_worker_has_its_clean_up(
    prepared: Connection,
) -> None:
    """B11"""
    first = await living(prepared)
    job = await enqueue(prepared, max_attempts=1, timeout=timedelta(seconds=1))
    await claim_calls.claim_jobs(prepared, "default", KINDS, 1, "worker-1", first)
    await prepared.execute("UPDATE hybrid_runner.jobs SET started_at = now() - interval '1 hour'")
    await Rescuer(knowing_work()).end_hung(prepared, "worker-1", [job], timedelta(0))
    [(ended, state, _)] = await told(prepared)
    assert (ended, state) == (job, "failed")


async def test_a_rescue_hands_its_traces_to_what_follows(prepared: Connection) -> None:
    """F4"""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await enqueue(prepared, max_attempts=1)
    await claim_calls.claim_jobs(prepared, "default", KINDS, 1, "gone", 1)
    rescuer = Rescuer(knowing_work(), traces_after=lambda batch: [trace for _ in batch])
    await rescuer.rescue(prepared)
    stored = "SELECT traceparent FROM hybrid_runner.jobs WHERE kind = 'clean-up'"
    assert await prepared.fetchval(stored) == trace


async def test_clean_up_of_a_cancelled_job_is_stored_by_the_rights_of_a_worker(
    prepared: Connection,
) -> None:
    """B6, B11"""
    job = await enqueue(prepared)
    await prepared.execute("SET ROLE hybrid_runner_worker")
    assert await client_calls.cancel_job(prepared, job, "not needed") == "cancelled"
    await prepared.execute("RESET ROLE")
    assert await told(prepared) == [(job, "cancelled", "not needed")]


async def test_a_worker_s_own_rights_suffice_to_store_what_follows(
    prepared: Connection,
) -> None:
    first = await living(prepared)
    job = await enqueue(prepared)
    await prepared.execute("SET ROLE hybrid_runner_worker")
    result = await claim_calls.claim_jobs(prepared, "default", KINDS, 1, "worker-1", first)
    ending = Finished(result.claims[0], State.COMPLETED, follow_ups=(NewJob("poll"),))
    assert await claim_calls.finish_jobs(prepared, [ending]) == {job}
    await prepared.execute("RESET ROLE")
    assert len(await told(prepared)) == 1
    assert await prepared.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 2
