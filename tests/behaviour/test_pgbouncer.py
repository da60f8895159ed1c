"""Behind a real PgBouncer, with fewer connections to the server than it has clients, so that
sessions really change hands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from hybrid_runner.errors import DatabaseError
from hybrid_runner.storage.connections import pooler
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.storage.connections.pool import Pool, open_pool
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS, FOR_SETTLING, for_claims
from hybrid_runner.storage.migrations import migrate, schema_version
from hybrid_runner.storage.queries import migrations
from tests.attach.definitions import AUDITS, COLUMNS, WORDS
from tests.behaviour.noting_app import RUNS, runs
from tests.cli.running import ROOT, WorkerProcess, worker
from tests.support.outside import missing
from tests.support.pgbouncer import find, pgbouncer, why_absent
from tests.support.waiting import at_least, until, until_fetched
from tests.support.working import runner, working

APP = "tests.behaviour.noting_app:app"
SLEEPERS = "SELECT count(*) FROM hybrid_runner.sleepers"
END_OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname ="
    " current_database() AND pid <> pg_backend_pid()"
)
COMPLETED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'completed'"
THE_SESSIONS_OWN = (
    "SELECT WHERE current_setting('plan_cache_mode') = 'auto' AND current_setting('lock_timeout') ="
    " '0' AND current_setting('enable_seqscan') = 'on'"
)
SETTINGS = (
    "SELECT current_setting('plan_cache_mode') AS plans, current_setting('lock_timeout') AS lock, "
)
OURS_IGNORED = ", ".join(
    (
        "plan_cache_mode",
        "jit",
        "default_transaction_isolation",
        "extra_float_digits",
        *pooler.MARK,
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_keepalives_count",
        *for_claims(flushed=False),
        *FOR_SETTLING,
    )
)


@pytest.fixture(autouse=True, scope="module")
def program() -> None:
    if not find():
        missing(why_absent())


@pytest.fixture
def pooled_dsn(dsn: str) -> Iterator[str]:
    with pgbouncer(dsn) as by_pooler:
        yield by_pooler


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs"
    path.touch()
    return path


@asynccontextmanager
async def a_worker(dsn: str, file: Path, **settings: str) -> AsyncIterator[WorkerProcess]:
    given = {
        "HYBRID_RUNNER_DSN": dsn,
        RUNS: str(file),
        "HYBRID_RUNNER_POLL_BASE": "200ms",
        "HYBRID_RUNNER_POLL_CAP": "500ms",
    }
    async with worker(APP, "--queue", "default=20", cwd=ROOT, **(given | settings)) as process:
        await process.says("has started")
        yield process


async def test_workers_and_a_client_share_three_sessions_and_every_job_ends_once(
    pooled_dsn: str, database: Connection, file: Path, tmp_path: Path
) -> None:
    """A4 F5: two deaf workers with four links each and a client with a pool, no setting but the
    DSN.
    """
    count = 300
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(a_worker(pooled_dsn, file)) for _ in range(2)]
        app = await stack.enter_async_context(runner(pooled_dsn))
        held = await asyncio.gather(
            *(app.enqueue("hold", str(tmp_path / "go")) for _ in range(30))
        )  # more than one can take
        await until(lambda: len(runs(file, "began")), at_least(len(held)))
        (tmp_path / "go").touch()
        kinds = [("note", "detour")[n % 10 == 0] for n in range(count)]
        handles = await asyncio.gather(
            *(app.enqueue(kind, n, key=f"n{n}") for n, kind in enumerate(kinds))
        )
        assert await asyncio.gather(*(handle.wait(120) for handle in handles)) == list(range(count))
        assert {await handle.wait(120) for handle in held} == {"attempt 1"}
        assert await database.fetchval(SLEEPERS) == 0
        assert [await process.ends() for process in workers] == [0, 0]
    assert await database.fetchval(COMPLETED) == count + len(held)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
    assert (
        await database.fetchval("SELECT count(DISTINCT worker_id) FROM hybrid_runner.archive") == 2
    )
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0
    assert sorted(runs(file)) == sorted(handle.id for handle in (*handles, *held))
    assert len(runs(file, "began")) == 3 * kinds.count("detour") + len(held)


async def test_sessions_that_end_behind_the_pooler_lose_no_job(
    pooled_dsn: str, database: Connection, file: Path
) -> None:
    """A9: as in a failover, in the middle of claims and settles; the worker's own connections, to
    the pooler, stay.
    """
    count, quarter = 4000, 1000
    async with a_worker(pooled_dsn, file) as process:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload) SELECT 'note', to_jsonb(n) FROM"
            " generate_series(1, $1::int) AS n",
            count,
        )
        for ended in range(1, count, quarter):
            await until_fetched(
                database, f"SELECT count(*) >= {ended} FROM hybrid_runner.archive", value=True
            )
            await database.execute(END_OTHERS)
        await until_fetched(database, COMPLETED, count)
        assert await process.ends() == 0
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
    assert (
        await database.fetchval("SELECT count(DISTINCT payload) FROM hybrid_runner.archive")
        == count
    )
    assert len(set(runs(file))) == count


async def test_a_deaf_worker_says_so_and_touches_no_bell(
    pooled_dsn: str, database: Connection, file: Path
) -> None:
    """A2 A3: rings do not arrive through a pooler; it says so, polls, and mutes nothing."""
    async with a_worker(pooled_dsn, file, DOORBELL_RATE="0.1") as process:
        await process.says("set HYBRID_RUNNER_LISTEN_DSN")
        bell = (
            "SELECT pg_sequence_last_value(doorbell::regclass) FROM hybrid_runner.queues WHERE name"
            " = 'default'"
        )
        assert await database.fetchval(bell) is None
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload) SELECT 'note', '1' FROM"
            " generate_series(1, 300)"
        )
        await until_fetched(database, COMPLETED, 300)
        assert await database.fetchval(bell) is None
        assert await database.fetchval(SLEEPERS) == 0
        assert await process.ends() == 0
    assert not any("listening on" in line["message"] for line in process.lines)
    warnings = [line["message"] for line in process.lines if line["level"] in ("warning", "error")]
    assert [
        message for message in warnings if "rings do not arrive" not in message
    ] == []  # duties included


async def test_with_a_direct_dsn_to_listen_on_rings_arrive(dsn: str, pooled_dsn: str) -> None:
    """A1: and the bell is moved on that session."""
    app = runner(pooled_dsn, listen_dsn=dsn)

    @app.job("note")
    async def note(payload: int) -> int:
        return payload

    async with working(app) as worker:
        assert await (await app.enqueue(note, 3)).wait(120) == 3
        assert worker.status().queues[0].found.get("ring") == 1
        assert worker.status().queues[0].polls == 0


async def test_in_session_mode_rings_arrive_without_another_dsn(dsn: str) -> None:
    """A3: whether they do is proved, whatever the pooler is called."""
    with pgbouncer(dsn, mode="session", size=20) as by_pooler:
        app = runner(by_pooler)

        @app.job("note")
        async def note(payload: int) -> int:
            return payload

        async with working(app) as worker:
            assert await (await app.enqueue(note, 3)).wait(120) == 3
            assert worker.status().queues[0].found.get("ring") == 1


async def test_each_statement_has_its_settings_and_leaves_none(dsn: str, pooled_dsn: str) -> None:
    claims, settles = (
        LazyConnection(pooled_dsn, for_claims(flushed=False)),
        LazyConnection(pooled_dsn, FOR_SETTLING),
    )
    stranger = await connect(pooled_dsn)
    ask = (
        SETTINGS
        + "current_setting('synchronous_commit') AS flush, current_setting('enable_seqscan') AS"
        " scan, $1::int AS n"
    )
    for n in range(5):
        [[*claiming], [*settling]] = await asyncio.gather(
            claims.fetch(ask, n), settles.fetch(ask, n)
        )
        assert [tuple(row) for row in claiming] == [
            (FOR_CLAIMS["plan_cache_mode"], "0", "off", "off", n)
        ]
        assert [tuple(row)[:2] for row in settling] == [("force_custom_plan", "1s")]
        # One message without arguments is not ours to wrap: it shows what the session itself has.
        assert await stranger.execute(THE_SESSIONS_OWN) == "SELECT 1"
    for connection in (claims, settles):
        await connection.close()
    await stranger.close()


async def test_a_statement_searches_the_catalogue_alone_whatever_its_session_does(
    dsn: str,
) -> None:
    """Whoever had the session before may have left tables of his own in it."""
    with pgbouncer(dsn, size=1) as by_pooler:
        stranger = await connect(by_pooler)
        await stranger.execute("CREATE TEMP TABLE pg_class (oid oid); SET search_path = pg_temp")
        pool = await open_pool(by_pooler, largest=2)
        assert await value(pool, "SHOW search_path") == "pg_catalog, pg_temp"
        assert await value(pool, "SELECT count(*) > 0 FROM pg_class") is True
        await pool.close()
        await stranger.close()


async def value(pool: Pool, query: str, *arguments: object) -> object:
    return (await pool.fetch(query, *arguments))[0][0]


async def test_a_refused_statement_leaves_the_connection_usable(pooled_dsn: str) -> None:
    """A connection that is cut off does not leave its transaction to the next."""
    pool = await open_pool(pooled_dsn, largest=1)
    for _ in range(3):
        with pytest.raises(Exception, match="division"):
            await pool.fetch("SELECT 1 / $1::int", 0)
        assert await value(pool, "SELECT $1::int", 5) == 5
        with pytest.raises(TimeoutError):
            await pool.fetch("SELECT pg_sleep($1)", 10, timeout=0.1)
        assert await value(pool, "SELECT $1::int", 6) == 6
    await pool.close()


async def test_a_pool_does_not_reset_what_belongs_to_others(dsn: str) -> None:
    """What somebody else left in the only session is not touched."""
    with pgbouncer(dsn, size=1) as by_pooler:
        stranger = await connect(by_pooler)
        await stranger.execute("SET work_mem = '7777kB'; SELECT pg_advisory_lock(7777)")
        pool = await open_pool(by_pooler, largest=2)
        assert await value(pool, "SELECT $1::int", 1) == 1
        await pool.close()
        assert await stranger.fetchval("SELECT current_setting('work_mem')") == "7777kB"
        assert (
            await stranger.fetchval(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7777"
            )
            == 1
        )
        await stranger.close()


async def test_the_schema_can_be_made_through_it(empty_dsn: str) -> None:
    with pgbouncer(empty_dsn) as by_pooler:
        connection = await connect(by_pooler)
        assert len(await migrate(connection)) == len(migrations())
        assert await schema_version(connection) == len(migrations())
        await connection.close()


async def test_a_pooler_that_drops_our_settings_without_a_word_is_noticed(dsn: str) -> None:
    """Some poolers do so, and PgBouncer if it is configured to."""
    with pgbouncer(dsn, ignore_startup_parameters=OURS_IGNORED) as by_pooler:
        pool = await open_pool(by_pooler, largest=8)
        numbers = await asyncio.gather(*(value(pool, "SELECT $1::int", n) for n in range(100)))
        assert numbers == list(range(100))
        assert pooler.is_known(by_pooler)
        await pool.close()


async def test_what_the_dsn_itself_asks_for_and_the_pooler_refuses_is_one_clear_line(
    pooled_dsn: str,
) -> None:
    with pytest.raises(
        DatabaseError,
        match=r"the pooler refuses what the DSN asks for: .*work_mem.*: take it out of the DSN$",
    ):
        await connect(f"{pooled_dsn}&work_mem=8MB")


async def test_a_direct_connection_is_not_taken_for_a_pooled_one(dsn: str) -> None:
    connection = await connect(dsn)
    assert not pooler.is_pooled(connection)
    assert await connection.fetchval("SHOW plan_cache_mode") == "force_custom_plan"
    await connection.close()


async def test_a_table_is_checked_and_attached_through_the_pooler(
    dsn: str, pooled_dsn: str
) -> None:
    """Sessions change hands: nothing of it may stay in one, and no name may be looked up there."""
    direct = await connect(dsn)
    await direct.execute(AUDITS)
    async with runner(pooled_dsn) as app:
        for _ in range(2):
            attached = await app.attach(
                "audits", kind="audit", words=WORDS, columns=COLUMNS, when="urgency > 3"
            )
            assert attached.table == "public.audits"
    await direct.execute("INSERT INTO public.audits (urgency) VALUES (5), (1)")
    assert await direct.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 1
    await direct.close()
