"""Who looks after rows of attached tables, and when."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.metrics import row_instruments
from hybrid_runner.upkeep.constant_work import ConstantWork, Step
from hybrid_runner.upkeep.duties.sources import Sources
from hybrid_runner.upkeep.held_duty import HeldDuty
from hybrid_runner.upkeep.sources.row_changes import ApplyRowChanges
from hybrid_runner.upkeep.sources.row_check import CheckRows
from hybrid_runner.web.pages.health import checks_of
from tests.support import working as support
from tests.support.waiting import PATIENCE, equals, has, until, until_fetched
from tests.support.working import working
from tests.worker.test_late_rows import LATE, attach, begun, held_while_ending, inserted
from tests.worker.test_row_changes import ENDED, LIVES

Another = Callable[[], Awaitable[Connection]]
DUTY = "SELECT count(*) FROM hybrid_runner.duties WHERE name = 'sources'"
HELD = "SELECT count(*) FROM hybrid_runner.duties WHERE name = 'sources' AND holder IS NOT NULL"
CANCELLED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'cancelled'"
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name IN ('hybrid-runner late rows', 'hybrid-runner row changes')"
)


def runner(dsn: str, **settings: Any) -> Runner:
    """One that leaves the jobs of rows alone."""
    app = support.runner(dsn, **settings)

    @app.job("other")
    async def other(payload: object) -> None: ...

    return app


DETACH = "DELETE FROM hybrid_runner.sources; DELETE FROM hybrid_runner.late_rows"


async def test_the_duty_is_there_while_tables_are_attached(database: Connection) -> None:
    assert await database.fetchval(DUTY) == 0
    await attach(database)
    assert await database.fetchval(DUTY) == 1
    await database.execute(DETACH)
    assert await database.fetchval(DUTY) == 0


async def test_a_worker_takes_the_duty_when_a_table_is_attached_and_leaves_it_when_none_is(
    dsn: str, database: Connection
) -> None:
    async with working(runner(dsn, heartbeat=60, lease=180)):
        await attach(database)
        await until_fetched(database, HELD, 1)
        await until_fetched(database, SESSIONS, 2)
        await database.execute(DETACH)
        await until_fetched(database, SESSIONS, 0)


async def test_another_worker_takes_it_over_at_once_when_its_holder_stops(
    dsn: str, database: Connection
) -> None:
    async with AsyncExitStack() as first:
        await first.enter_async_context(working(runner(dsn, worker_id="one")))
        await attach(database)
        await until_fetched(database, f"{HELD} AND holder LIKE 'one %'", 1)
        async with working(runner(dsn, heartbeat=60, lease=180, worker_id="two")):
            await first.aclose()
            await until_fetched(database, f"{HELD} AND holder LIKE 'two %'", 1)
            await until_fetched(database, SESSIONS, 2)


async def test_a_row_cancelled_by_its_application_ends_its_job_without_a_poll(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6: the ring is heard."""
    monkeypatch.setattr("hybrid_runner.upkeep.sources.row_changes.PAUSE", 3600.0)
    async with working(runner(dsn)) as worker:
        await inserted(database, 2)
        await worker.hearing()
        for row in (1, 2):  # the first one may be there when the worker looks by itself
            await database.execute(
                "UPDATE public.audits SET status = 'cancelled' WHERE id = $1", row
            )
            await until_fetched(database, CANCELLED, row)


async def test_a_ring_is_not_about_the_comparing_of_tables(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring costs two looks, as docs/sql.md says, and no connection."""
    looks = {"changes": 0, "check": 0}

    class Changes(ApplyRowChanges):
        async def run(self, connection: Fetches) -> float:
            looks["changes"] += 1
            await super().run(connection)
            return 3600.0

    class Check(CheckRows):
        async def run(self, connection: Fetches) -> float:
            looks["check"] += 1
            await super().run(connection)
            return 3600.0

    duties = "hybrid_runner.upkeep.duties.sources"
    monkeypatch.setattr(f"{duties}.ApplyRowChanges", Changes)
    monkeypatch.setattr(f"{duties}.CheckRows", Check)
    async with working(runner(dsn)) as worker:
        await inserted(database)
        await worker.hearing()
        await until(lambda: looks["check"], equals(1))
        for _ in range(3):
            before = looks["changes"]
            await database.execute("NOTIFY \"hybrid_runner.~sources\", 'changes'")
            await until(lambda: looks["changes"], partial(operator.lt, before))
        assert looks["check"] == 1


async def test_a_deaf_worker_looks_after_rows_as_well(dsn: str, database: Connection) -> None:
    async with working(runner(dsn, heartbeat=0.2), deaf=True):
        await inserted(database)
        await database.execute("UPDATE public.audits SET status = 'cancelled'")
        await until_fetched(database, ENDED, ["1 cancelled"])


async def test_a_late_row_is_written_after_its_holders_commit(
    dsn: str, database: Connection, another: Another
) -> None:
    """D7; row of section 6: handler holds the row in an open transaction and returns."""
    await database.execute(LIVES)  # else upkeep may rescue the job before it has ended
    async with working(runner(dsn)) as worker:
        form = await held_while_ending(database, another)
        await until(
            lambda: worker.status().metric_values.get(row_instruments.LATE_ROWS.name),
            equals({("public.audits", "audit"): 1}),
        )
        await form.execute("COMMIT")
        await until_fetched(database, LATE, 0)
        word = "SELECT status FROM public.audits"
        assert await database.fetchval(word) == "completed"
        written = await until(
            lambda: worker.status().metric_values.get(row_instruments.LATE_ROWS_WRITTEN.name), bool
        )
        # Until it was free it was tried, however often.
        tried = {what: count for (_, what), count in (written or {}).items() if what != "locked"}
        assert tried == {"written": 1}


async def test_what_somebody_should_look_at_is_in_the_workers_health(
    dsn: str, database: Connection, another: Another
) -> None:
    await database.execute(LIVES)  # else upkeep may rescue the job before it has ended
    async with working(runner(dsn)) as worker:
        await held_while_ending(database, another)
        await database.execute(
            "UPDATE hybrid_runner.late_rows SET since = since - interval '2 min'"
        )
        await database.execute(
            "UPDATE hybrid_runner.sources SET is_reconciled = false, note = 'no'"
        )

        def reason() -> str:
            (check,) = [each for each in checks_of(worker.status()) if each.name == "sources"]
            assert check.ok
            return check.reason

        told = await until(reason, has("1 rows of public.audits are late, one for 1"))
        assert "somebody holds the row" in told
        assert "have no job are not looked for: no" in told


@pytest.mark.parametrize(
    ("done", "told"),
    [
        ("DROP TABLE public.audits", "public.audits was dropped"),
        ("UPDATE hybrid_runner.late_rows SET is_refused = true", "Postgres refuses 1 rows"),
    ],
)
async def test_a_table_in_disorder_is_said_to_be_so(
    database: Connection, dsn: str, done: str, told: str
) -> None:
    """Row of section 6: table renamed or dropped."""
    await inserted(database)
    await begun(database)
    await database.execute(
        "INSERT INTO hybrid_runner.late_rows (source, row_key, why, next_try_at)"
        " VALUES (1, '1', 'no', 'infinity')"
    )
    await database.execute(done)
    duty = Sources()
    duty.held_until = float("inf")
    await duty.run(database)
    assert told in duty.complaints[0]
    duty.end_hold()
    assert duty.complaints == ()
    assert duty.metric_values() == {}


async def test_whoever_is_cancelled_while_a_step_ends_is_cancelled_and_a_second_stop_waits_for_it(
    dsn: str,
) -> None:
    """The cancellation of a worker that loses a duty in this moment was taken for the step's end:
    its stop waited for ever.
    """
    begun, ending, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(Step):
        name = "slow"

        async def run(self, connection: Fetches) -> float:  # noqa: ARG002
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                while not end.is_set():
                    ending.set()
                    with suppress(asyncio.CancelledError):
                        await end.wait()
            return 0.0

    work = ConstantWork(dsn, Slow())
    work.start()
    await begun.wait()
    stopping = asyncio.ensure_future(work.stop())
    await ending.wait()
    stopping.cancel()
    try:
        done, _ = await asyncio.wait([stopping], timeout=PATIENCE)
        assert done
        assert stopping.cancelled()
        again = asyncio.ensure_future(work.stop())
        await asyncio.wait([again], timeout=0.01)
        assert not again.done()
    finally:
        end.set()
    await again


async def test_the_steps_of_a_duty_that_another_worker_took_end(
    dsn: str, database: Connection
) -> None:
    await attach(database)
    duty = Sources()
    duty.every = timedelta(seconds=0.3)
    held = HeldDuty(dsn, duty)
    await database.execute("UPDATE hybrid_runner.duties SET holder = 'us' WHERE name = 'sources'")
    held.give("us")
    running = asyncio.ensure_future(held.run())
    try:
        await until_fetched(database, SESSIONS, 2)
        await database.execute(
            "UPDATE hybrid_runner.duties SET holder = 'them' WHERE name = 'sources'"
        )
        await until_fetched(database, SESSIONS, 0)
    finally:
        running.cancel()
        await asyncio.wait([running])
        await held.close()
