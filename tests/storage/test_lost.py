"""Who counts as dead, who says so, and what is found of what they ran."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, tzinfo

import pytest

from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.jobs import State
from hybrid_runner.model.news import (
    DutyGiven,
    HeartbeatNews,
    LookAgain,
    WorkerDied,
)
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep import rescuer as rescuer_module
from hybrid_runner.upkeep.rescuer import Rescuer
from tests.support import inside
from tests.support.beats import beat, told
from tests.support.jobs import KINDS, claim, enqueue, living, running

Another = Callable[[], Awaitable[Connection]]


async def silent_for(
    database: Connection, worker_id: str, seconds: float, noticed: float = 10
) -> None:
    """As if nothing had been heard of it for so long, and others had noticed some seconds ago."""
    await database.execute(
        "UPDATE hybrid_runner.workers SET heartbeat_at = clock_timestamp() - make_interval(secs =>"
        " $2), suspected_at = clock_timestamp() - make_interval(secs => $3) WHERE id = $1",
        worker_id,
        seconds,
        noticed,
    )


async def listening(database: Connection, worker_id: str) -> int:
    """A worker that was there for long; the first of its claim numbers."""
    first = await living(database, worker_id)
    await database.execute(
        "UPDATE hybrid_runner.workers SET unbroken_since = '-infinity' WHERE id = $1", worker_id
    )
    return first


def dead(news: list[HeartbeatNews]) -> list[str]:
    return [one.worker_id for one in news if isinstance(one, WorkerDied)]


def duties(news: list[HeartbeatNews]) -> list[str]:
    return sorted(one.name for one in news if isinstance(one, DutyGiven))


@pytest.fixture
def old_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server under test may be seconds old, and whoever was silent before its start is not
    dead: pretend it is not.
    """
    from hybrid_runner.storage import queries  # noqa: PLC0415
    from hybrid_runner.storage.connections import statements  # noqa: PLC0415

    real = queries.query
    monkeypatch.setattr(
        statements,
        "query",
        lambda name: real(name).replace("pg_postmaster_start_time()", "timestamptz '2020-01-01'"),
    )


@pytest.mark.usefixtures("old_server")
async def test_a_worker_silent_for_longer_than_its_lease_is_declared_dead_once_in_ten_seconds(
    database: Connection,
) -> None:
    first = await listening(database, "lives")
    await living(database, "dies", lease=timedelta(hours=1))
    await silent_for(database, "dies", 3540, noticed=1000)
    news = await told(database, "lives", first)
    assert dead(news) == []
    [left] = [one.after.total_seconds() for one in news if isinstance(one, LookAgain)]
    assert 0 < left <= 60
    await silent_for(database, "dies", 3601, noticed=1000)
    assert dead(await told(database, "lives", first)) == ["dies"]
    assert dead(await told(database, "lives", first)) == []
    await database.execute(
        "UPDATE hybrid_runner.workers SET rescued_at = rescued_at - interval '11 seconds' WHERE id"
        " = 'dies'"
    )
    assert dead(await told(database, "lives", first)) == ["dies"]


@pytest.mark.usefixtures("old_server")
async def test_of_many_who_beat_at_once_one_declares(
    database: Connection, another: Another
) -> None:
    names = [f"lives-{number}" for number in range(5)]
    firsts = [await listening(database, name) for name in names]
    await living(database, "dies")
    await silent_for(database, "dies", 31)
    connections = [await another() for _ in names]
    news = await asyncio.gather(
        *(told(c, name, first) for c, name, first in zip(connections, names, firsts, strict=True))
    )
    assert [name for each in news for name in dead(each)] == ["dies"]


@pytest.mark.usefixtures("old_server")
async def test_a_worker_that_was_silent_itself_declares_nobody(database: Connection) -> None:
    """After an outage all leases have expired: whoever is back first must not take the jobs of all
    others.
    """
    first = await listening(database, "first back")
    await living(database, "second back")
    for name in ("first back", "second back"):
        await silent_for(database, name, 60)
    assert dead(await told(database, "first back", first)) == []
    await database.execute(
        "UPDATE hybrid_runner.workers SET unbroken_since = unbroken_since - interval '31 s' WHERE"
        " id = 'first back'"
    )
    assert dead(await told(database, "first back", first)) == ["second back"]


async def test_nobody_is_dead_for_having_been_silent_while_the_server_was_down(
    database: Connection,
) -> None:
    """What is said of a server that has just started: the one under test has, or its age is taken
    into account.
    """
    first = await listening(database, "lives")
    await living(database, "could not speak")
    age = await database.fetchval(
        "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8"
    )
    await database.execute(
        "UPDATE hybrid_runner.workers SET lease = make_interval(secs => $1)", min(age + 60, 86400)
    )
    await silent_for(database, "could not speak", age + 120)
    assert dead(await told(database, "lives", first)) == []


@pytest.mark.usefixtures("old_server")
async def test_one_with_a_long_lease_is_no_judge_of_those_with_short_ones(
    database: Connection,
) -> None:
    """It was cut off with all others, for less than half of its own lease and more than theirs."""
    first = await listening(database, "long")
    await living(database, "short")
    await database.execute(
        "UPDATE hybrid_runner.workers SET lease = '10 minutes' WHERE id = 'long'"
    )
    for name in ("long", "short"):
        await silent_for(database, name, 60)
    assert dead(await told(database, "long", first)) == []


@pytest.mark.usefixtures("old_server")
async def test_the_dead_are_told_so(database: Connection) -> None:
    first, dies = await listening(database, "lives"), await living(database, "dies")
    await silent_for(database, "dies", 31)
    await beat(database, "lives", first)
    assert await beat(database, "dies", dies) is None
    assert (await beat(database, "unknown", 1)) is None


async def test_a_worker_whose_name_was_taken_over_is_told_that_it_is_lost(
    database: Connection,
) -> None:
    older = await living(database, "same")
    newer = await living(database, "same")
    assert await beat(database, "same", older) is None
    assert await beat(database, "same", newer) is not None


async def test_a_duty_is_for_one_and_for_then(database: Connection) -> None:
    firsts = {name: await living(database, name) for name in ("a", "b")}
    known = ["prune", "orphaned_jobs"]
    given = [duties(await told(database, name, firsts[name], duties=known)) for name in ("a", "b")]
    assert given == [["orphaned_jobs", "prune"], []]
    await database.execute(
        "UPDATE hybrid_runner.duties SET taken_at = taken_at - every WHERE name = 'orphaned_jobs'"
    )
    assert duties(await told(database, "b", firsts["b"], duties=known)) == ["orphaned_jobs"]


async def test_a_duty_is_given_to_those_who_know_it(database: Connection) -> None:
    """Of two versions in one fleet the older one must not keep a new duty from being done."""
    older, newer = await living(database, "older"), await living(database, "newer")
    await database.execute(
        "INSERT INTO hybrid_runner.duties (name, every) VALUES ('of tomorrow', '1 hour')"
    )
    assert duties(await told(database, "older", older, duties=["prune"])) == ["prune"]
    assert duties(await told(database, "newer", newer, duties=["prune", "of tomorrow"])) == [
        "of tomorrow"
    ]


async def claimed(database: Connection, worker_id: str, number: int) -> int:
    job = await enqueue(database)
    await claim_calls.claim_jobs(database, "default", KINDS, 1, worker_id, number)
    return job


async def test_lost_is_what_no_living_worker_has(database: Connection) -> None:
    first, dead_first = await living(database, "lives"), await living(database, "dead")
    await claimed(database, "lives", first)
    lost = {
        await claimed(database, "dead", dead_first): "dead",
        await claimed(database, "unknown", 7): "unknown",
        await claimed(
            database, "lives", first - 1
        ): "lives",  # an earlier worker of this name made that claim
    }
    await database.execute("UPDATE hybrid_runner.workers SET dead_at = now() WHERE id = 'dead'")
    found = await worker_calls.find_lost(database, 10)
    assert {one.claim.id: one.worker_id for one in found} == lost
    assert len(await worker_calls.find_lost(database, 2)) == 2


async def rescuing(database: Connection) -> Rescuer:
    await database.execute("SET lock_timeout = '200ms'")
    return Rescuer(Registry())


async def test_a_rescue_charges_the_attempt_backs_off_and_ends_the_last_one(
    database: Connection,
) -> None:
    first_try, last_try = (
        await claimed(database, "gone", 1),
        await enqueue(database, max_attempts=1),
    )
    await claim_calls.claim_jobs(database, "default", KINDS, 1, "gone", 2)
    rescuer = await rescuing(database)
    await rescuer.rescue(database)
    rows = await database.fetch(
        "SELECT id, state::text, attempt, run_at > now() AS later, errors FROM"
        " hybrid_runner.all_jobs ORDER BY id"
    )
    assert [tuple(row)[:4] for row in rows] == [
        (first_try, "queued", 1, True),
        (last_try, "failed", 1, False),
    ]
    assert all('"WorkerLost"' in row["errors"] and "gone" in row["errors"] for row in rows)
    assert rescuer.rescued == 2


async def test_the_clock_of_whoever_rescues_uses_up_no_budget(
    database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: time is the database's."""

    class Fast(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Fast:
            return cls.fromtimestamp(time.time() + 7200, tz)

    monkeypatch.setattr(rescuer_module, "datetime", Fast)
    await enqueue(database, max_attempts=3, max_duration=timedelta(hours=1))
    await claim_calls.claim_jobs(database, "default", KINDS, 1, "gone", 1)
    await (await rescuing(database)).rescue(database)
    row = await database.fetchrow("SELECT state::text, errors FROM hybrid_runner.all_jobs")
    assert row is not None
    assert row["state"] == "queued", row["errors"]


async def test_a_job_whose_cancelling_was_asked_for_ends_as_cancelled(database: Connection) -> None:
    """B6"""
    first = await living(database, "dies")
    job = await claimed(database, "dies", first)
    assert await client_calls.cancel_job(database, job, None) == "requested"
    await database.execute("UPDATE hybrid_runner.workers SET dead_at = now()")
    await (await rescuing(database)).rescue(database)
    assert (
        await database.fetchval("SELECT state::text FROM hybrid_runner.archive WHERE id = $1", job)
        == "cancelled"
    )


async def test_a_row_that_somebody_holds_does_not_hold_up_the_others(
    database: Connection, another: Another
) -> None:
    held, free = await claimed(database, "gone", 1), await claimed(database, "gone", 2)
    other = await another()
    holding = other.transaction()
    await holding.start()
    await other.execute("SELECT FROM hybrid_runner.jobs WHERE id = $1 FOR UPDATE", held)
    rescuer = await rescuing(database)
    await asyncio.wait_for(rescuer.rescue(database), 120)
    states = "SELECT state::text FROM hybrid_runner.jobs WHERE id = $1"
    assert (await database.fetchval(states, held), await database.fetchval(states, free)) == (
        "running",
        "queued",
    )
    await holding.rollback()
    await rescuer.rescue(database)
    assert await database.fetchval(states, held) == "queued"


async def test_rows_that_somebody_holds_do_not_hide_those_behind_them(
    database: Connection, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if they fill a batch."""
    monkeypatch.setattr(rescuer_module, "BATCH", 2)
    jobs = [await claimed(database, "gone", number) for number in range(1, 6)]
    other = await another()
    holding = other.transaction()
    await holding.start()
    await other.execute("SELECT FROM hybrid_runner.jobs WHERE id = ANY ($1) FOR UPDATE", jobs[:3])
    await asyncio.wait_for((await rescuing(database)).rescue(database), 120)
    states = await database.fetch("SELECT state::text FROM hybrid_runner.jobs ORDER BY id")
    assert [row[0] for row in states] == ["running"] * 3 + ["queued"] * 2
    await holding.rollback()


async def test_a_held_row_of_a_lost_claim_is_for_the_next_time(
    database: Connection, another: Another
) -> None:
    """Claims wait for this answer, so it must not wait for others."""
    held, free = await claimed(database, "here", 1), await claimed(database, "here", 2)
    other = await another()
    holding = other.transaction()
    await holding.start()
    await other.execute("SELECT FROM hybrid_runner.jobs WHERE id = $1 FOR UPDATE", held)
    first = await asyncio.wait_for(claim_calls.release_lost(database, "default", "here", []), 120)
    assert first == {held: False, free: True}
    await holding.rollback()
    assert await claim_calls.release_lost(database, "default", "here", []) == {held: True}


async def test_what_was_settled_meanwhile_stays(database: Connection) -> None:
    """A rescue is fenced by the claim, as every write is."""
    taken = await running(database)
    await database.execute("UPDATE hybrid_runner.workers SET dead_at = now()")
    lost = await worker_calls.find_lost(database, 10)
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED)])
    rescuer = Rescuer(Registry())
    assert (
        await inside.put_back(
            rescuer, database, [Requeued(lost[0].claim, timedelta(0), charged=True)]
        )
        == 0
    )
    assert await database.fetchval("SELECT state::text FROM hybrid_runner.archive") == "completed"


async def test_the_dead_are_forgotten_after_a_while(database: Connection) -> None:
    for name, seconds in (("long dead", 61), ("just dead", 1)):
        await living(database, name)
        await database.execute(
            "UPDATE hybrid_runner.workers SET dead_at = now() - make_interval(secs => $2) WHERE id"
            " = $1",
            name,
            seconds,
        )
    await living(database, "lives")
    await (await rescuing(database)).rescue(database)
    assert {row[0] for row in await database.fetch("SELECT id FROM hybrid_runner.workers")} == {
        "just dead",
        "lives",
    }


async def test_a_lost_claim_of_a_job_that_still_runs_under_an_older_one_is_put_back(
    database: Connection,
) -> None:
    """A crash may undo a claim that was not flushed: the same worker then claims the job again, and
    that answer may be lost.
    """
    old = await running(database)
    await database.execute(
        "UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL, worker_id = NULL, started_at"
        " = NULL"
    )
    [lost] = await claim(database)
    assert (lost.id, lost.number) != (old.id, old.number)
    known = [(old.id, old.number)]
    assert (
        await claim_calls.release_lost(
            database, "default", "worker-1", [*known, (lost.id, lost.number)]
        )
        == {}
    )
    assert await claim_calls.release_lost(database, "default", "worker-1", known) == {old.id: True}
