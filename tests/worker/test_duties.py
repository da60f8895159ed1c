"""What a worker's heartbeat is given to do in the tables, and does without holding up a beat."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Runner
from hybrid_runner.durations import parse_duration
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties import Duties
from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.duty_runner import DutyRunner
from hybrid_runner.upkeep.rescuer import Rescuer
from tests.docs.blocks import ROOT
from tests.support.archive import aged, exists, partition
from tests.support.waiting import differs_from, equals, until
from tests.support.working import runner, working

POLICY = "SELECT state::text, kind, keep FROM hybrid_runner.retention ORDER BY 1, 2"
HOUR = 60


async def nothing(payload: object) -> None: ...


def with_handler(dsn: str, **settings: Any) -> Runner:
    app = runner(dsn, **settings)

    @app.job("report", keep_completed="7d", keep_failed=timedelta(days=30))
    async def report(payload: object) -> None: ...

    return app


async def test_what_settings_and_kinds_say_is_written_when_a_worker_starts(
    dsn: str, database: Connection
) -> None:
    """B15"""
    async with working(with_handler(dsn, keep_completed="10m", keep_cancelled=90)):
        pass
    assert [tuple(row) for row in await database.fetch(POLICY)] == [
        ("cancelled", "", timedelta(seconds=90)),
        ("completed", "", timedelta(minutes=10)),
        ("completed", "report", timedelta(days=7)),
        ("failed", "", timedelta(hours=24)),
        ("failed", "report", timedelta(days=30)),
    ]


async def test_without_settings_what_the_database_has_stays(dsn: str, database: Connection) -> None:
    await database.execute("SELECT hybrid_runner.keep('failed', '3 days')")
    app = runner(dsn)
    app.job("plain")(nothing)
    async with working(app):
        pass
    assert [tuple(row) for row in await database.fetch(POLICY)] == [
        ("cancelled", "", timedelta(hours=24)),
        ("completed", "", timedelta(hours=1)),
        ("failed", "", timedelta(days=3)),
    ]


@pytest.mark.parametrize("keep", ["0", "-1", "11000d", "soon"])
def test_a_time_that_makes_no_sense_is_refused_with_one_line(keep: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        Runner(keep_failed=keep)
    assert "keep_failed" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    app = Runner()
    with pytest.raises(ConfigurationError):
        app.job("x", keep_failed=keep)(nothing)


async def test_a_worker_prunes_by_itself(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B15"""
    caplog.set_level("INFO", "hybrid_runner.upkeep")
    part = await partition(database, "archive_completed", 3 * HOUR, 2 * HOUR)
    await aged(database, 130)
    async with working(with_handler(dsn), deaf=True):
        await until(lambda: exists(database, part), equals(value=False))
        await until(lambda: any(part in message for message in caplog.messages))
    [line] = [message for message in caplog.messages if part in message]
    assert line.startswith(f"archive: dropped {part} (")


async def test_a_duty_that_waits_for_a_lock_holds_up_no_beat(
    dsn: str, database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    # It waits until the test has seen it: by itself it gives up after two seconds, for an hour.
    await database.execute(
        "ALTER FUNCTION hybrid_runner.make_archive_partitions SET lock_timeout = '5min'"
    )
    holder = await another()
    await holder.execute(
        "BEGIN; SELECT FROM hybrid_runner.locks WHERE name = 'partitions' FOR UPDATE"
    )
    async with working(with_handler(dsn, heartbeat=0.2), deaf=True) as worker:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
        await until(lambda: database.fetchval(waiting))
        beaten = "SELECT heartbeat_at FROM hybrid_runner.workers WHERE id = $1"
        first = await database.fetchval(beaten, worker.id)
        await until(lambda: database.fetchval(beaten, worker.id), differs_from(first))
        await holder.execute("COMMIT")


async def test_a_duty_that_fails_does_not_keep_the_next_from_its_turn(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    part = await partition(database, "archive_completed", 3 * HOUR, 2 * HOUR)
    await database.execute("ALTER FUNCTION hybrid_runner.make_archive_partitions RENAME TO gone")
    async with a_runner(dsn) as duties:
        duties.give(["partitions", "prune"], "us")
        await until(lambda: exists(database, part), equals(value=False))
    [line] = [message for message in caplog.messages if "partitions" in message]
    assert line.endswith("again at its next turn")


async def test_a_duty_that_this_version_does_not_know_is_named_once_and_does_no_harm(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    part = await partition(database, "archive_completed", 3 * HOUR, 2 * HOUR)
    async with a_runner(dsn) as duties:
        for _ in range(3):
            duties.give(["of tomorrow", "prune"], "us")
        await until(lambda: exists(database, part), equals(value=False))
    assert [message for message in caplog.messages if "of tomorrow" in message] == [
        "the duty 'of tomorrow' is not known here: left to workers of another version"
    ]


async def test_the_rows_of_the_table_are_the_duties_of_the_list(monitored: Connection) -> None:
    await monitored.execute(
        "INSERT INTO hybrid_runner.sources"
        " (relation, relation_name, kind, queue, owner, definition)"
        " VALUES ('pg_class', 'a', 'b', 'c', 'd', '{}')"  # the duty `sources` is there with one
    )
    await monitored.execute(  # and `schedules`
        "INSERT INTO hybrid_runner.schedules (name, kind, every) VALUES ('a', 'b', '1 hour')"
    )
    rows = await monitored.fetch("SELECT name, every FROM hybrid_runner.duties")
    assert {tuple(row) for row in rows} == {
        (duty.name, duty.every) for duty in Duties(Rescuer(Registry())).all
    }


def test_the_page_lists_the_duties_of_the_list() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    table = page.partition("| duty | how often |")[2].partition("\n\n")[0]
    rows = re.findall(r"\| `(\w+)` \| (\d+) (\w)\w+ \|", table)
    listed = {name: parse_duration(number + unit) for name, number, unit in rows}
    assert listed == {duty.name: duty.every for duty in Duties(Rescuer(Registry())).all}


@asynccontextmanager
async def a_runner(dsn: str, of: Sequence[Duty] = ()) -> AsyncIterator[DutyRunner]:
    duties = DutyRunner(dsn, of or Duties(Rescuer(Registry())).all)
    tasks = [asyncio.ensure_future(run()) for run in duties.loops]
    try:
        yield duties
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await duties.close()


async def test_a_duty_that_takes_long_holds_up_no_other(dsn: str) -> None:
    """Rescues of orphaned jobs must not wait for half an hour of pruning."""
    pruning, over, rescued = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Long(Duty):
        name, every = "prune", timedelta(minutes=10)

        async def run(self, _: object) -> None:
            pruning.set()
            await over.wait()

    class Short(Duty):
        name, every = "orphaned_jobs", timedelta(minutes=10)

        async def run(self, _: object) -> None:
            rescued.set()

    async with a_runner(dsn, [Short(), Long()]) as duties, asyncio.timeout(120):
        duties.give(["prune"], "us")
        await pruning.wait()
        duties.give(["orphaned_jobs"], "us")
        await rescued.wait()
