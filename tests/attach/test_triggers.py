"""What the triggers of an attached table do: they only ever insert."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hybrid_runner.attach.rendering import dropping_rest, dropping_triggers
from hybrid_runner.model.sources import Words
from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import AUDITS, COLUMNS, attach_audits, attach_table

INSERT = "INSERT INTO public.audits (website_url, status) "


async def jobs(database: Connection) -> list[str]:
    """The keys of the rows that have a job."""
    found = await database.fetch("SELECT row_key FROM hybrid_runner.jobs ORDER BY id")
    return [row[0] for row in found]


async def changes(database: Connection) -> list[tuple[str, str]]:
    """What was noted of rows."""
    found = await database.fetch("SELECT row_key, what FROM hybrid_runner.row_changes ORDER BY id")
    return [(row[0], row[1]) for row in found]


async def test_each_way_of_inserting_makes_a_job_for_each_wanted_row(database: Connection) -> None:
    """D1; COPY, multi-row."""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'pending')")
    await database.execute(INSERT + "VALUES ('b', 'pending'), ('c', 'draft'), ('d', 'pending')")
    await database.copy_records_to_table(
        "audits",
        schema_name="public",
        columns=["website_url", "status"],
        records=[("e", "pending"), ("f", None)],
    )
    assert await jobs(database) == ["1", "2", "4", "5"]
    job = await database.fetchrow("SELECT * FROM hybrid_runner.jobs ORDER BY id LIMIT 1")
    assert job is not None
    assert (job["source"], job["kind"], job["queue"], job["key"]) == (1, "audit", "default", None)
    assert (job["payload"], job["state"], job["priority"]) == ('{"id": 1}', "queued", 5)
    assert await changes(database) == []


async def test_an_upsert_makes_a_job_for_what_it_inserts_and_what_it_makes_wanted(
    database: Connection,
) -> None:
    """`ON CONFLICT DO UPDATE`."""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'draft')")
    await database.execute(
        "INSERT INTO public.audits (id, status) OVERRIDING SYSTEM VALUE"
        " VALUES (1, 'pending'), (7, 'pending')"
        " ON CONFLICT (id) DO UPDATE SET status = excluded.status"
    )
    assert sorted(await jobs(database)) == ["1", "7"]


async def test_a_row_that_becomes_wanted_gets_a_job_and_other_updates_none(
    database: Connection,
) -> None:
    """D1"""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'draft'), ('b', NULL)")
    await database.execute("UPDATE public.audits SET website_url = 'c', retry_count = 1")
    assert await jobs(database) == []
    await database.execute("UPDATE public.audits SET status = 'pending'")
    assert await jobs(database) == ["1", "2"]
    await database.execute("UPDATE public.audits SET website_url = 'd'")
    await database.execute("UPDATE public.audits SET status = 'pending'")
    assert await jobs(database) == ["1", "2"]
    assert await changes(database) == []


async def test_deleted_rows_are_noted_if_they_have_a_job(database: Connection) -> None:
    """Delete of queued / running / finished row"""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'pending'), ('b', 'done'), ('c', 'pending')")
    await database.execute("UPDATE hybrid_runner.jobs SET state = 'running' WHERE row_key = '3'")
    await database.execute("DELETE FROM public.audits")
    assert sorted(await changes(database)) == [("1", "gone"), ("3", "gone")]
    assert await jobs(database) == ["1", "3"]


async def test_rows_that_are_cascaded_away_are_noted(database: Connection) -> None:
    """Cascade deletes"""
    await database.execute("CREATE TABLE public.sites (name text PRIMARY KEY)")
    await database.execute(AUDITS)
    await database.execute(
        "ALTER TABLE public.audits ADD FOREIGN KEY (website_url) REFERENCES public.sites"
        " ON DELETE CASCADE"
    )
    await attach_audits(database)
    await database.execute("INSERT INTO public.sites VALUES ('a')")
    await database.execute(INSERT + "VALUES ('a', 'pending')")
    await database.execute("DELETE FROM public.sites")
    assert await changes(database) == [("1", "gone")]


async def test_truncated_rows_are_noted(database: Connection) -> None:
    """TRUNCATE"""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'pending'), ('b', 'done'), ('c', 'pending')")
    await database.execute("TRUNCATE public.audits")
    assert sorted(await changes(database)) == [("1", "gone"), ("3", "gone")]


async def test_deletions_can_be_ignored(database: Connection) -> None:
    await database.execute(AUDITS)
    await attach_table(database, "public.audits", columns=COLUMNS)
    await attach_table(database, "public.audits", columns=COLUMNS, on_delete="ignore")
    await database.execute(INSERT + "VALUES ('a', 'pending'), ('b', 'pending')")
    await database.execute("DELETE FROM public.audits WHERE id = 1")
    await database.execute("TRUNCATE public.audits")
    assert await changes(database) == []


async def test_a_row_that_is_to_be_cancelled_is_noted_once(database: Connection) -> None:
    """App sets `cancelled`"""
    await database.execute(AUDITS)
    await attach_table(
        database, "public.audits", columns=COLUMNS, cancel="{row}.status = 'cancelled'"
    )
    await database.execute(INSERT + "VALUES ('a', 'pending'), ('b', 'done')")
    await database.execute("UPDATE public.audits SET status = 'cancelled'")
    await database.execute("UPDATE public.audits SET status = 'cancelled', website_url = 'c'")
    assert await changes(database) == [("1", "cancelled")]
    look = "SELECT bool_and(is_cancelled) FROM hybrid_runner.source_1_rows('judged', '{1,2}', NULL)"
    assert await database.fetchval(look)
    await database.execute("UPDATE public.audits SET status = NULL WHERE id = 1")
    assert not await database.fetchval(look)


async def test_a_row_with_another_key_is_another_row(database: Connection) -> None:
    """Key columns changed by UPDATE"""
    await database.execute(AUDITS.replace("GENERATED ALWAYS AS IDENTITY ", ""))
    await attach_table(database, "public.audits", columns=COLUMNS)
    await database.execute("INSERT INTO public.audits (id) VALUES (1), (2)")
    await database.execute("UPDATE public.audits SET status = 'done' WHERE id = 2")
    await database.execute("UPDATE public.audits SET id = id + 10")
    assert await jobs(database) == ["1", "2", "11"]
    assert sorted(await changes(database)) == [("1", "gone"), ("2", "gone")]


async def test_a_row_that_comes_again_while_the_job_of_an_earlier_one_lives_is_noted(
    database: Connection,
) -> None:
    """Delete of queued / running / finished row: its key can be used again."""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'pending')")
    await database.execute("DELETE FROM public.audits")
    await database.execute(
        "INSERT INTO public.audits (id) OVERRIDING SYSTEM VALUE VALUES (8), (1), (9)"
    )
    assert await changes(database) == [("1", "gone"), ("1", "wanted")]
    assert sorted(await jobs(database)) == ["1", "8", "9"]


async def test_priority_and_time_are_decided_by_the_row(database: Connection) -> None:
    """D8; what jobs would refuse is clamped."""
    await database.execute(AUDITS)
    await attach_table(
        database,
        "public.audits",
        columns=COLUMNS,
        priority="{row}.retry_count * 2",
        run_at="{row}.last_heartbeat",
    )
    await database.execute(
        "INSERT INTO public.audits (retry_count, last_heartbeat) VALUES (1, '2030-01-02 UTC'),"
        " (-1, '0044-03-15 BC'), (1000, 'infinity'), (NULL, NULL)"
    )
    found = await database.fetch(
        "SELECT priority, run_at::text, run_at <= now() AS at_once"
        " FROM hybrid_runner.jobs ORDER BY id"
    )
    assert [row["priority"] for row in found] == [2, 0, 9, 5]
    assert [row["run_at"][:10] for row in found[:3]] == ["2030-01-02", "1970-01-01", "9998-12-31"]
    assert found[3]["at_once"]
    await database.execute("UPDATE public.audits SET status = 'done'")
    await database.execute("DELETE FROM hybrid_runner.jobs")
    await database.execute("UPDATE public.audits SET status = 'pending' WHERE id = 1")
    assert await database.fetchval("SELECT priority FROM hybrid_runner.jobs") == 2


async def test_two_sources_on_one_table_each_get_their_jobs(database: Connection) -> None:
    """Two sources on one table"""
    await attach_audits(database)
    words = Words(
        queued="mail", running="mailing", completed="mailed", failed="x", cancelled="x", snoozed="y"
    )
    await attach_table(
        database,
        "public.audits",
        kind="mail",
        words=words,
        columns=COLUMNS,
        when="{row}.status = 'mail'",
    )
    await database.execute(INSERT + "VALUES ('a', 'pending'), ('b', 'mail')")
    found = await database.fetch("SELECT row_key, source, kind FROM hybrid_runner.jobs")
    assert sorted(map(tuple, found)) == [("1", 1, "audit"), ("2", 2, "mail")]


async def test_after_the_triggers_are_dropped_rows_make_no_jobs(database: Connection) -> None:
    """Acceptance 5: functions, views and triggers go, on whatever table they are by now."""
    await database.execute(AUDITS)
    owner = (await attach_table(database, "public.audits", columns=COLUMNS)).runner_owner
    await database.execute("ALTER TABLE public.audits RENAME TO checks")
    async with database.transaction():
        for statement in dropping_triggers(1, owner):
            await database.execute(statement)
    await database.execute("INSERT INTO public.checks DEFAULT VALUES")
    assert await jobs(database) == []
    assert await _made(database) == [
        "source_1_changes",
        "source_1_jobs",
        "source_1_late",
        "source_1_rows",
        "source_1_want",
        "source_1_write",
    ]
    async with database.transaction():
        for statement in dropping_rest(1, owner):
            await database.execute(statement)
    assert await _made(database) == []


async def test_attached_again_everything_is_replaced(database: Connection) -> None:
    await attach_audits(database)
    again = await attach_table(
        database, "public.audits", columns=COLUMNS, when="{row}.status = 'ready'", queue="slow"
    )
    assert again.number == 1
    await database.execute(INSERT + "VALUES ('a', 'pending'), ('b', 'ready')")
    assert await jobs(database) == ["2"]
    assert await database.fetchval("SELECT queue FROM hybrid_runner.jobs") == "slow"
    await database.execute("UPDATE public.audits SET status = 'ready'")
    assert await jobs(database) == ["2", "1"]


async def test_rows_are_looked_at_and_missing_jobs_are_stored(database: Connection) -> None:
    """Replica role, disabled triggers, pg_restore: what the reconciler asks."""
    await attach_audits(database)
    await database.execute(INSERT + "VALUES ('a', 'pending')")
    await database.execute("SET session_replication_role = replica")
    await database.execute(
        INSERT + "VALUES ('b', 'pending'), ('c', 'processing'), ('d', 'pending'), ('e', 'done')"
    )
    await database.execute("RESET session_replication_role")
    look = "SELECT row_key, word, is_wanted FROM hybrid_runner.source_1_rows($1, $2, $3)"
    read = await database.fetch(look, "judged", ["1", "3", "99"], None)
    assert sorted(map(tuple, read)) == [("1", "pending", True), ("3", "processing", False)]
    running = await database.fetch(look, "running without job", [], 10)
    assert list(map(tuple, running)) == [("3", "processing", None)]
    assert await database.fetch(look, "running without job", ["3"], 10) == []
    wanted = await database.fetch(look, "wanted without job", ["4"], 10)
    assert list(map(tuple, wanted)) == [("2", "pending", True)]
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(1)") == 1
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(10)") == 1
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(10)") == 0
    assert sorted(await jobs(database)) == ["1", "2", "4"]


@pytest.mark.parametrize("is_partitioned", [False, True])
async def test_a_large_table_is_gone_through_once(
    is_partitioned: bool, database: Connection
) -> None:
    """Backfill: from block to block, so that no row is looked at twice."""
    await database.execute(
        "CREATE TABLE public.tasks (id bigint PRIMARY KEY, status text)"
        + (
            " PARTITION BY RANGE (id);"
            "CREATE TABLE public.one PARTITION OF public.tasks FOR VALUES FROM (0) TO (5000);"
            "CREATE TABLE public.other PARTITION OF public.tasks FOR VALUES FROM (5000) TO (99999)"
            if is_partitioned
            else ""
        )
    )
    await database.execute(
        "INSERT INTO public.tasks SELECT n, CASE WHEN n % 2 = 0 THEN 'pending' ELSE 'done' END"
        " FROM generate_series(1, 20000) AS n"
    )
    source = await attach_table(database, "public.tasks")
    blocks = await row_calls.table_blocks(database, source.number)
    assert 50 < blocks < 200
    found = [
        await row_calls.want_rows(database, source.number, 99_999, first, 16)
        for first in range(0, blocks, 16)
    ]
    assert sum(found) == 10_000
    assert max(found) < 3_000 * (1 + is_partitioned)
    assert await row_calls.want_rows(database, source.number, 99_999) == 0


async def test_a_row_that_somebody_holds_is_left_out_and_named(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    await attach_audits(database)
    await database.execute("SET session_replication_role = replica")
    await database.execute(INSERT + "VALUES ('a', 'pending')")
    await database.execute("RESET session_replication_role")
    form = await another()
    async with form.transaction():
        holder = await form.fetchval("SELECT pg_current_xact_id()::text")
        await form.execute("SELECT FROM public.audits FOR UPDATE")
        assert await database.fetchval("SELECT hybrid_runner.source_1_want(10)") == 0
        held = "SELECT seen FROM hybrid_runner.source_1_rows('held', ARRAY['1'], NULL)"
        assert await database.fetchval(held) == holder
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(10)") == 1


@pytest.mark.parametrize("what", ["", "backfill", "READ"])
async def test_rows_are_looked_at_in_known_ways_only(database: Connection, what: str) -> None:
    await attach_audits(database)
    with pytest.raises(Exception, match="rows can be read"):
        await database.fetch("SELECT * FROM hybrid_runner.source_1_rows($1, '{}', 1)", what)


async def _made(database: Connection) -> list[str]:
    found = await database.fetch(
        "SELECT proname AS name FROM pg_proc WHERE proname ~ '^source_1_'"
        " UNION ALL SELECT relname FROM pg_class WHERE relname ~ '^source_1_'"
        " UNION ALL SELECT tgname FROM pg_trigger WHERE tgname ~ '^hybrid_runner_1_' ORDER BY name"
    )
    return [row[0] for row in found]
