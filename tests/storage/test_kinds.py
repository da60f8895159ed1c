"""What workers declare of their kinds, and who uses it: the queue of a job, and likely typos."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner.errors import RowLocked, RunnerError
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.storage import client_calls, kind_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import living

QUEUE = "SELECT queue FROM hybrid_runner.jobs WHERE id = $1"


def warnings_of(connection: Connection) -> list[str]:
    """What Postgres warns this session of from now on."""
    heard: list[str] = []

    def hear(_: object, message: object) -> None:
        if getattr(message, "severity", "") == "WARNING":
            heard.append(getattr(message, "message", ""))

    connection.add_log_listener(hear)
    return heard


async def declare(connection: Connection, *names: str, queue: str = "images") -> None:
    await kind_calls.declare_kinds(connection, [DeclaredKind(name, queue) for name in names])


async def test_a_job_without_a_queue_waits_in_that_of_its_handler(database: Connection) -> None:
    """B17: by SQL and by name, one and many, with a key and without; plain INSERT says what it
    means.
    """
    await declare(database, "thumbnail")
    ids = [
        await database.fetchval("SELECT hybrid_runner.enqueue('thumbnail')"),
        await database.fetchval(
            "SELECT id FROM hybrid_runner.enqueue_job('thumbnail', key => 'k')"
        ),
        (await client_calls.enqueue_job(database, NewJob("thumbnail"), "exists")).id,
    ]
    assert [await database.fetchval(QUEUE, number) for number in ids] == ["images"] * 3
    given = await database.fetchval("SELECT hybrid_runner.enqueue('thumbnail', queue => 'mine')")
    assert await database.fetchval(QUEUE, given) == "mine"
    plain = await database.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind) VALUES ('thumbnail') RETURNING id"
    )
    assert await database.fetchval(QUEUE, plain) == "default"


async def test_a_job_that_replaces_another_moves_to_the_queue_of_its_handler(
    database: Connection,
) -> None:
    first = await database.fetchval("SELECT hybrid_runner.enqueue('thumbnail', key => 'k')")
    assert await database.fetchval(QUEUE, first) == "default"
    await declare(database, "thumbnail")
    await database.execute(
        "SELECT hybrid_runner.enqueue('thumbnail', key => 'k', on_conflict => 'replace')"
    )
    assert await database.fetchval(QUEUE, first) == "images"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("thumbnial", "thumbnail"),
        ("thumbnal", "thumbnail"),
        ("thumbnails", "thumbnail"),
        ("thumbnaul", "thumbnail"),
        ("Thumbnail", "thumbnail"),
        ("send-email", "send_email"),
        ("sendemail", "send_email"),
        ("thumb", None),
        ("report", None),
        ("poll-2", None),
        ("poll-1", None),
        ("bit", None),
    ],
)
async def test_a_likely_typo_is_one_letter_or_what_stands_between_words(
    database: Connection, written: str, meant: str | None
) -> None:
    """B17: not a new version of a kind, nor a short name like another."""
    await declare(database, "thumbnail", "send_email", "poll-1", "bin")
    heard = warnings_of(database)
    await database.execute("SELECT hybrid_runner.enqueue($1)", written)
    expected = f"no worker has a handler for kind '{written}': did you mean '{meant}'?"
    assert heard == ([expected] if meant else [])
    [found] = await kind_calls.look_up_kinds(database, [written])
    assert found.meant == meant


async def test_a_typo_is_warned_of_with_a_queue_too_and_once_in_a_transaction(
    database: Connection,
) -> None:
    await declare(database, "thumbnail")
    heard = warnings_of(database)
    await database.execute(
        "SELECT hybrid_runner.enqueue('thumbnial', queue => 'images') FROM generate_series(1, 50)"
    )
    assert len(heard) == 1
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 50
    await database.execute("SELECT hybrid_runner.enqueue('thumbnial')")
    assert len(heard) == 2


@pytest.mark.parametrize("kind", ["'" + "x" * 100_000 + "'", "NULL", "''", "'%;drop'"])
async def test_no_name_of_a_kind_is_too_strange_to_be_refused_in_order(
    database: Connection, kind: str
) -> None:
    await declare(database, "thumbnail")
    with pytest.raises((asyncpg.CheckViolationError, asyncpg.NotNullViolationError)):
        await database.execute(f"SELECT hybrid_runner.enqueue({kind})")


async def test_what_was_meant_is_searched_for_once_and_not_for_each_of_many_jobs(
    database: Connection,
) -> None:
    """A search reads all kinds: 100,000 jobs of a kind whose worker is not there yet make one."""
    await declare(database, "thumbnail")
    await database.execute("SET track_functions = 'all'")
    async with database.transaction():
        await database.execute(
            "SELECT hybrid_runner.enqueue('report', queue => 'a'), hybrid_runner.enqueue('report')"
            " FROM generate_series(1, 100)"
        )
        calls = "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'similar_kind'"
        assert await database.fetchval(calls) == 1
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 200


async def test_a_kind_is_declared_anew_by_whoever_starts_last(database: Connection) -> None:
    """B18: old and new workers may start in any order."""
    await declare(database, "thumbnail", "other", queue="a")
    [before, _] = await kind_calls.list_kinds(database)
    new = DeclaredKind(
        "thumbnail", "b", "clean", 3, timedelta(hours=1), timedelta(days=1), '{"type": "object"}'
    )
    await kind_calls.declare_kinds(database, [new])
    other, thumbnail = await kind_calls.list_kinds(database)
    assert (other.name, other.queue) == ("other", "a")
    assert DeclaredKind(*(getattr(thumbnail, name) for name in DeclaredKind._fields)) == new
    assert thumbnail.seen_at >= before.seen_at


async def test_what_is_declared_already_is_not_written_again(database: Connection) -> None:
    """A hundred processes that start together write one row once."""
    version = "SELECT xmin::text FROM hybrid_runner.kinds WHERE name = 'thumbnail'"
    await declare(database, "thumbnail")
    first = await database.fetchval(version)
    await declare(database, "thumbnail")
    assert await database.fetchval(version) == first
    await database.execute("UPDATE hybrid_runner.kinds SET seen_at = seen_at - interval '2 hours'")
    old = await database.fetchval(version)
    await declare(database, "thumbnail")
    assert await database.fetchval(version) != old


async def test_whoever_holds_a_kind_holds_up_no_worker_that_says_the_same(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Another declaration waits for it, and gives up as any statement does."""
    await declare(database, "thumbnail")
    holder = await another()
    async with holder.transaction():
        await holder.execute("SELECT FROM hybrid_runner.kinds FOR UPDATE")
        await database.execute("SET lock_timeout = '50ms'")
        await declare(database, "thumbnail")
        with pytest.raises(RowLocked):
            await declare(database, "thumbnail", queue="other")


async def test_kinds_that_nobody_has_known_for_long_are_forgotten(database: Connection) -> None:
    await declare(database, "known", "lately", "long-ago")
    await database.execute(
        "INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, kinds)"
        " VALUES ('w', '', 1, '', '{\"images\": 1}', '{known}')"
    )
    await database.execute(
        "UPDATE hybrid_runner.kinds SET seen_at = now() - CASE name WHEN 'lately'"
        " THEN interval '80 days' ELSE interval '100 days' END"
    )
    await kind_calls.note_known_kinds(database, timedelta(days=90))
    rows = await database.fetch(
        "SELECT name, seen_at > now() - interval '1 minute' FROM hybrid_runner.kinds ORDER BY 1"
    )
    assert [tuple(row) for row in rows] == [("known", True), ("lately", False)]


@pytest.mark.parametrize(
    "kind",
    [
        DeclaredKind("a b", "images"),
        DeclaredKind("a", "no queue"),
        DeclaredKind("a", "images", on_end=""),
        DeclaredKind("a", "images", max_snoozes=-1),
        DeclaredKind("a", "images", max_duration=timedelta(0)),
        DeclaredKind("a", "images", finish_within=timedelta(days=4000)),
        DeclaredKind("a", "images", payload_schema='"' + "x" * 70_000 + '"'),
    ],
)
async def test_a_row_that_would_harm_producers_is_refused(
    database: Connection, kind: DeclaredKind
) -> None:
    with pytest.raises(RunnerError):
        await kind_calls.declare_kinds(database, [kind])


async def test_older_code_takes_no_clean_up_away_while_newer_code_lives(
    database: Connection,
) -> None:
    """B11, B18: by `cancel` too, which asks the table alone."""
    await kind_calls.declare_kinds(database, [DeclaredKind("poll", "images", "clean-up")])
    await living(database, "newer", kinds=["poll"])
    await declare(database, "poll")  # older code
    job = await database.fetchval("SELECT hybrid_runner.enqueue('poll')")
    await database.execute("SELECT hybrid_runner.cancel($1)", job)
    cleans_up = "SELECT count(*) FROM hybrid_runner.jobs WHERE kind = 'clean-up'"
    assert await database.fetchval(cleans_up) == 1
    await database.execute("UPDATE hybrid_runner.workers SET dead_at = now()")
    await declare(database, "poll")  # nobody is left who says otherwise
    assert await database.fetchval("SELECT on_end FROM hybrid_runner.kinds") is None
