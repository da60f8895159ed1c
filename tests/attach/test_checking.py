"""What is asked for becomes a source: its facts are those of the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid_runner.attach.checking import check
from hybrid_runner.model.sources import Columns, ColumnType, Expression, Words
from hybrid_runner.storage.connections.connection import Connection
from tests.attach.definitions import AUDITS, DEFINITION, WORDS, asked, checked


@pytest.fixture
async def audits(database: Connection) -> Connection:
    """A database with the table audits."""
    await database.execute(AUDITS)
    return database


async def test_a_table_becomes_a_source(audits: Connection) -> None:
    """D1 D3"""
    source = (await checked(audits)).source
    assert (source.schema, source.table, source.kind, source.queue) == (
        "public",
        "audits",
        "audit",
        "default",
    )
    assert source.key == (ColumnType("id", "uuid", "uuid", is_not_null=True),)
    assert source.status == ColumnType("status", "text", "text", is_not_null=True)
    assert source.columns["started_at"] == ColumnType(
        "processing_started_at", "timestamp with time zone", "timestamptz"
    )
    assert set(source.columns) == {
        "worker_id",
        "started_at",
        "heartbeat_at",
        "retry_count",
        "result",
    }
    assert source.condition == Expression(
        "(new.status = 'pending'::text)", "(old.status = 'pending'::text)"
    )
    assert source.left_out == ("report",)
    assert source.payload is not None
    assert {"id", "raw_data", "created_at"} < {*source.payload}
    assert "report" not in source.payload
    assert not source.by_row
    owner = await audits.fetchval("SELECT current_user::text")
    assert source.owner == source.runner_owner == owner


async def test_words_that_are_not_given_follow_from_the_others(audits: Connection) -> None:
    """Section 5: the queued word from the condition, cancelled as failed, snoozed as running."""
    source = (await checked(audits, asked(words=replace(WORDS, queued=None)))).source
    assert source.words == Words(
        queued="pending",
        running="processing",
        completed="completed",
        failed="failed",
        cancelled="failed",
        snoozed="processing",
    )
    assert source.cancel is None


async def test_a_word_of_its_own_for_cancelled_cancels(audits: Connection) -> None:
    """B6"""
    source = (await checked(audits, asked(words=replace(WORDS, cancelled="stalled")))).source
    assert source.cancel == Expression(
        "(new.status = 'stalled'::text)", "(old.status = 'stalled'::text)"
    )


async def test_the_status_is_always_part_of_the_condition(audits: Connection) -> None:
    when = "website_url IS NOT NULL -- those that can be worked on"
    source = (await checked(audits, asked(when=when))).source
    assert source.condition.new == (
        "((new.status = 'pending'::text)) AND ((new.website_url IS NOT NULL))"
    )


async def test_without_a_condition_the_word_alone_decides(audits: Connection) -> None:
    """Each update of a row asks, so it is short."""
    source = (await checked(audits, asked(when="true"))).source
    assert source.condition.new == "(new.status = 'pending'::text)"


async def test_priority_and_time_are_expressions_over_the_row(audits: Connection) -> None:
    """D8"""
    definition = asked(
        priority="CASE WHEN urgency > 5 THEN 1 ELSE 5 END",
        run_at="created_at + interval '1 hour'",
        cancel_when="website_url = ''",
    )
    source = (await checked(audits, definition)).source
    assert source.priority is not None
    assert "new.urgency > 5" in source.priority.new
    assert source.run_at is not None
    assert source.run_at.old == "(old.created_at + '01:00:00'::interval)"
    assert source.cancel is not None
    assert source.cancel.new == "(new.website_url = ''::text)"


async def test_names_as_odd_as_sql_has_them(database: Connection) -> None:
    """Section 6: every identifier is quoted; a text with our own words in it stays as it is."""
    await database.execute(
        'CREATE SCHEMA "My App";'
        " CREATE TYPE \"My App\".\"st ate\" AS ENUM ('new', 'at \"work\"', 'it''s done', 'b\\ad');"
        ' CREATE TABLE "My App"."Au"".dits" ("Id" int, "select" text,'
        ' "St ate" "My App"."st ate", PRIMARY KEY ("select", "Id"))'
    )
    definition = asked(
        table='"My App"."Au"".dits"',
        when="\"select\" <> 'row_of_source.x AS expression'",
        words=Words(queued="new", running='at "work"', completed="it's done", failed="b\\ad"),
        columns=Columns(status="St ate"),
    )
    source = (await checked(database, definition)).source
    assert [column.name for column in source.key] == ["select", "Id"]
    assert source.status.type == '"My App"."st ate"'
    assert source.status.base == "enum"
    assert source.condition.new == (
        '((new."St ate" = \'new\'::"My App"."st ate")) AND'
        " ((new.\"select\" <> 'row_of_source.x AS expression'::text))"
    )


async def test_a_partitioned_table_has_triggers_for_each_row(database: Connection) -> None:
    """Section 1: those for each statement do not fire for an insert into a partition."""
    await database.execute(
        "CREATE TABLE public.runs (at timestamptz, id bigint, status varchar(10),"
        " PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"
    )
    definition = asked(table="public.runs", columns=Columns(status="status"))
    source = (await checked(database, definition)).source
    assert source.by_row
    assert [column.name for column in source.key] == ["id", "at"]
    assert source.status == ColumnType("status", "character varying(10)", "varchar")


async def test_a_key_of_ones_own_needs_a_unique_index(database: Connection) -> None:
    await database.execute(
        "CREATE TABLE public.runs (tenant text NOT NULL, name text NOT NULL, status text,"
        " UNIQUE (tenant, name))"
    )
    definition = asked(table="runs", key=("name", "tenant"), columns=Columns(status="status"))
    source = (await checked(database, definition)).source
    assert [column.name for column in source.key] == ["name", "tenant"]


async def test_only_the_named_columns_are_given_to_the_handler(audits: Connection) -> None:
    source = (await checked(audits, asked(payload=("id", "report", "id")))).source
    assert source.payload == ("id", "report")
    assert source.left_out == ()


async def test_checking_leaves_nothing_behind(audits: Connection) -> None:
    count = "SELECT count(*) FROM pg_class WHERE relpersistence = 't'"
    async with audits.transaction():
        before = await audits.fetchval("SHOW search_path"), await audits.fetchval(count)
        await check(audits, DEFINITION, 1)
        assert (await audits.fetchval("SHOW search_path"), await audits.fetchval(count)) == before
