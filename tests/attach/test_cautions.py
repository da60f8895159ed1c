"""What whoever attaches a table is told: one line each."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from hybrid_runner.attach.checking import check
from hybrid_runner.errors import RowLocked
from hybrid_runner.model.sources import Columns, Source, SourceDefinition, Words
from hybrid_runner.storage.connections.connection import Connection
from tests.attach.definitions import AUDITS, COLUMNS, WORDS, asked, checked

INDEX = (
    "CREATE INDEX CONCURRENTLY ON public.audits (status) WHERE status IN ('pending', 'processing')"
)


async def warnings_of(database: Connection, **changes: Any) -> list[str]:
    warnings = (await checked(database, asked(**changes))).warnings
    assert not [line for line in warnings if "\n" in line]
    return [*warnings]


@pytest.fixture
async def audits(database: Connection) -> Connection:
    """A database with the table audits, of which there is little to say."""
    await database.execute(AUDITS)
    await database.execute("CREATE INDEX ON public.audits (status, created_at)")
    return database


QUIET = replace(WORDS, cancelled="stalled")


async def test_there_may_be_nothing_to_say(audits: Connection) -> None:
    assert await warnings_of(audits, words=QUIET) == []


async def test_a_trigger_of_another_column_is_not_fired(audits: Connection) -> None:
    await audits.execute(
        "CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW;"
        " END'; CREATE TRIGGER touched BEFORE UPDATE OF urgency ON public.audits FOR EACH ROW"
        " EXECUTE FUNCTION public.touch()"
    )
    assert await warnings_of(audits, words=QUIET) == []


async def test_a_missing_word_for_cancelled_is_said(audits: Connection) -> None:
    """Section 3: no word for cancelled, then failed's."""
    assert await warnings_of(audits) == [
        "rows whose jobs are cancelled say 'failed': with --cancelled they have a word of their own"
    ]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            "ALTER TABLE public.audits ALTER last_heartbeat TYPE timestamp",
            "last_heartbeat (--heartbeat-at) is a timestamp without time zone: what is written",
        ),
        (
            "ALTER TABLE public.audits ALTER processing_worker_id TYPE varchar(36)",
            "processing_worker_id (--worker-id) has room for 36 characters: what is longer is cut",
        ),
        (
            "ALTER TABLE public.audits ALTER raw_data TYPE varchar(2000)",
            "raw_data (--result) has room for 2000 characters: longer results are cut",
        ),
        (
            "ALTER TABLE public.audits ALTER last_heartbeat SET NOT NULL",
            "last_heartbeat (--heartbeat-at) is NOT NULL: when a job is put back, it keeps what",
        ),
        (
            "ALTER TABLE public.audits ADD CONSTRAINT few CHECK (retry_count < 3)",
            "the constraint few may refuse what is written into a row, which then is written late",
        ),
        (
            (
                "ALTER TABLE public.audits ADD CONSTRAINT two CHECK (status <> 'completed'"
                " OR website_url IS NOT NULL)"
            ),
            "the constraint two may refuse what is written",
        ),
        (
            "CREATE UNIQUE INDEX one ON public.audits (website_url) WHERE status = 'processing'",
            "the unique index one has status in it, and may refuse a word that another row has",
        ),
        (
            (
                "CREATE TABLE public.machines (name text PRIMARY KEY); ALTER TABLE public.audits"
                " ADD FOREIGN KEY (processing_worker_id) REFERENCES public.machines"
            ),
            "processing_worker_id refers to public.machines: what is written there and is no name",
        ),
        (
            (
                "CREATE TABLE public.states (name text PRIMARY KEY); ALTER TABLE public.states"
                " ENABLE ROW LEVEL SECURITY; ALTER TABLE public.audits ADD FOREIGN KEY (status)"
                " REFERENCES public.states"
            ),
            "status refers to public.states: what is written there and is no name is refused",
        ),
        (
            (
                "CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql"
                " AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER set_updated_at"
                " BEFORE UPDATE ON public.audits FOR EACH ROW EXECUTE FUNCTION public.touch()"
            ),
            "each heartbeat, every 30 s, fires the trigger set_updated_at: what that sets",
        ),
    ],
)
async def test_what_may_surprise_is_said(audits: Connection, made: str, said: str) -> None:
    """Section 3: heartbeats move updated_at and versions; times without zone are UTC."""
    await audits.execute(made)
    (line,) = await warnings_of(audits, words=QUIET)
    assert line.startswith(said)


async def test_without_a_heartbeat_a_trigger_fires_at_both_ends(audits: Connection) -> None:
    await audits.execute(
        "CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW;"
        " END'; CREATE TRIGGER touched AFTER UPDATE ON public.audits FOR EACH STATEMENT EXECUTE"
        " FUNCTION public.touch(); CREATE TRIGGER others BEFORE UPDATE OF urgency ON public.audits"
        " FOR EACH ROW EXECUTE FUNCTION public.touch(); CREATE TRIGGER asleep BEFORE UPDATE ON"
        " public.audits FOR EACH ROW EXECUTE FUNCTION public.touch(); ALTER TABLE public.audits"
        " DISABLE TRIGGER asleep"
    )
    (line,) = await warnings_of(audits, words=QUIET, columns=replace(COLUMNS, heartbeat_at=None))
    assert line.startswith("each time a row is written the trigger touched fires")


async def test_a_condition_that_depends_on_more_than_the_row_is_said(audits: Connection) -> None:
    lines = await warnings_of(
        audits,
        words=QUIET,
        when="created_at < now() AND created_at < current_timestamp + interval '1 day'",
    )
    assert [line.partition(" may ")[0] for line in lines] == ["current_timestamp, now()"]
    assert await warnings_of(audits, words=QUIET, run_at="now() + interval '1 hour'") == []


async def test_a_condition_that_goes_by_the_time_zone_of_whoever_asks_is_warned_about(
    audits: Connection,
) -> None:
    [line] = await warnings_of(audits, words=QUIET, when="created_at::date > '2026-01-01'")
    assert line.startswith("a cast to date goes by the settings of the session")
    fixed = "(created_at AT TIME ZONE 'UTC')::date > '2026-01-01'"
    assert await warnings_of(audits, words=QUIET, when=fixed) == []


async def test_an_index_is_offered(database: Connection) -> None:
    """Section 3: the partial index that makes the reconciler's question cheap."""
    await database.execute(AUDITS)
    (line,) = await warnings_of(database, words=QUIET)
    assert line == f"an index makes it cheap to look for rows that were missed: {INDEX}"


@pytest.mark.parametrize(
    "made",
    [
        "text",
        "varchar(20)",
        "char(20)",
        "public.state_name",
        "public.state",
        "smallint",
    ],
)
async def test_the_offered_index_serves_what_is_looked_for(database: Connection, made: str) -> None:
    """Section 3: the partial index is one that Postgres takes, and uses."""
    await database.execute(
        "CREATE DOMAIN public.state_name AS text;"
        " CREATE TYPE public.state AS ENUM ('pending', 'processing', 'completed', 'failed');"
        f" CREATE TABLE public.runs (id serial PRIMARY KEY, status {made})"
    )
    words = WORDS
    if made == "smallint":
        words = Words(queued="0", running="1", completed="2", failed="3")
    definition = asked(table="runs", when="id > 0", words=words, columns=Columns(status="status"))
    source, warnings = await found(database, definition)
    offered = warnings[-1].rpartition(": ")[2]
    await database.execute(offered.replace(" CONCURRENTLY", ""))
    await database.execute(
        "INSERT INTO public.runs (status) SELECT CAST(CASE n % 500 WHEN 0 THEN"
        f" '{words.queued}' WHEN 1 THEN '{words.running}' ELSE '{words.completed}' END AS {made})"
        " FROM generate_series(1, 20000) AS n"
    )
    await database.execute("ANALYZE public.runs")
    assert [line for line in (await found(database, definition))[1] if "index" in line] == []
    for condition in (source.condition.new, f"new.status IN ('{words.running}')"):
        plan = await database.fetch(f"EXPLAIN SELECT FROM public.runs AS new WHERE {condition}")
        assert "runs_status_idx" in "".join(line[0] for line in plan), plan


async def found(database: Connection, definition: SourceDefinition) -> tuple[Source, list[str]]:
    source_and_warnings = await checked(database, definition)
    return source_and_warnings.source, [*source_and_warnings.warnings]


async def test_a_large_table_without_an_index_is_not_searched(database: Connection) -> None:
    await database.execute(AUDITS)
    await database.execute(
        "UPDATE pg_class SET reltuples = 2e6 WHERE oid = 'public.audits'::regclass"
    )
    (line,) = await warnings_of(database, words=QUIET)
    assert line == (
        "public.audits has 2000000 rows and no index of those that are wanted: rows that were"
        f" missed are not looked for without --scan, or {INDEX}"
    )
    (line,) = await warnings_of(database, words=QUIET, scan=True)
    assert line.startswith("an index makes it cheap")


async def test_a_partitioned_table_is_offered_an_index_that_postgres_makes(
    database: Connection,
) -> None:
    await database.execute(
        'CREATE TABLE public.runs (at timestamptz, id bigint, "order" varchar(10),'
        " PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"
    )
    lines = await warnings_of(
        database, table="runs", when="true", words=QUIET, columns=Columns(status="order")
    )
    offered = lines[-1].rpartition(": ")[2]
    assert offered.startswith('CREATE INDEX ON public.runs ("order") WHERE "order" IN (')
    await database.execute(offered)


async def test_a_condition_that_speaks_of_another_word_is_said(audits: Connection) -> None:
    (line,) = await warnings_of(audits, words=QUIET, when="status = 'failed' OR urgency > 3")
    assert line == (
        "--when speaks of 'failed', and a row is wanted only while status is 'pending' (--queued)"
    )


async def test_a_kind_that_looks_like_a_typo_is_said(audits: Connection) -> None:
    await audits.execute("INSERT INTO hybrid_runner.kinds (name, queue) VALUES ('audit', 'audits')")
    source, warnings = await found(audits, asked(kind="audti", words=QUIET))
    assert warnings == ["no worker has declared the kind audti: was audit meant?"]
    assert source.queue == "default"
    assert (await found(audits, asked(words=QUIET)))[0].queue == "audits"


async def test_another_kind_for_the_same_rows_is_said(audits: Connection) -> None:
    """Section 6: two sources on one table."""
    await audits.execute(
        "INSERT INTO hybrid_runner.sources"
        " (relation, relation_name, kind, queue, owner, definition) VALUES ('public.audits',"
        " 'public.audits', 'review', 'default', current_user, $1)",
        json.dumps({"columns": {"status": "status"}, "words": {"queued": "pending"}}),
    )
    (line,) = await warnings_of(audits, words=QUIET)
    assert line.startswith("the kind review works on rows with the same word in the same column")
    assert await warnings_of(audits, kind="review", words=QUIET) == []


async def test_nobody_alters_the_table_while_it_is_attached(
    audits: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    beside = await another()
    await beside.execute("SET lock_timeout = 1")
    async with audits.transaction():
        await check(audits, asked(), 1)
        with pytest.raises(asyncpg.LockNotAvailableError):
            await beside.execute("ALTER TABLE public.audits DROP COLUMN urgency")
    await beside.execute("RESET lock_timeout")
    await beside.execute("ALTER TABLE public.audits DROP COLUMN urgency")


async def test_a_table_that_somebody_holds_is_a_lock_and_no_fault(
    audits: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Whoever attaches tries again, and names who holds it."""
    beside = await another()
    async with beside.transaction():
        await beside.execute("LOCK TABLE public.audits IN ACCESS EXCLUSIVE MODE")
        await audits.execute("SET lock_timeout = 1")
        with pytest.raises(RowLocked) as refused:
            await checked(audits)
    assert refused.value.sqlstate == "55P03"
