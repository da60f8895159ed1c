"""Tables as people have them: their columns take what is written, of whatever type they are."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import attach_table

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
COLUMNS = Columns(
    status="state",
    worker_id="worker",
    started_at="started",
    heartbeat_at="beat",
    retry_count="retries",
    finished_at="finished",
    result="result",
    error="error",
)
WHEN = "{row}.state::text = 'pending'"
ERROR = '{"attempt": 1, "type": "Odd", "message": "no \\"answer\\""}'


async def begin(database: Connection) -> Claim:
    """Claim the one job there is, and show that it runs."""
    (claim,) = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number)])
    assert shown[claim.id].outcome == "written"
    return claim


async def finish(database: Connection, claim: Claim, result: str | None = "null") -> None:
    done = Finished(claim, State.COMPLETED, result=result)
    assert await claim_calls.finish_jobs(database, [done])


async def fail(database: Connection, claim: Claim) -> None:
    assert await claim_calls.finish_jobs(database, [Finished(claim, State.FAILED, error=ERROR)])


async def put_back(database: Connection, claim: Claim, **more: Any) -> None:
    back = Requeued(claim, timedelta(0), **{"charged": True, "error": ERROR, **more})
    assert await claim_calls.requeue_jobs(database, [back])


async def row(database: Connection, table: str = "public.tasks") -> dict[str, Any]:
    (found,) = await database.fetch(f"SELECT * FROM {table}")
    return dict(found)


async def no_row_is_late(database: Connection) -> None:
    late = await database.fetch("SELECT row_key, why FROM hybrid_runner.late_rows")
    assert list(map(tuple, late)) == []


TABLE = """
CREATE TYPE public.state AS ENUM ('draft', 'pending', 'processing', 'completed', 'failed');
CREATE TABLE public.tasks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state {state} DEFAULT 'pending', worker {worker}, started {time}, beat {time}, finished {time},
    retries {retries}, result {result}, error {error}
)
"""
TYPES = {
    "state": "text",
    "worker": "text",
    "time": "timestamptz",
    "retries": "integer",
    "result": "jsonb",
    "error": "text",
}


async def attached(database: Connection, **types: str) -> None:
    await database.execute(TABLE.format(**TYPES | types))
    await attach_table(database, "public.tasks", columns=COLUMNS, when=WHEN)
    await database.execute("INSERT INTO public.tasks DEFAULT VALUES")


async def test_a_row_tells_of_an_attempt_that_failed_and_of_one_that_did_not(
    database: Connection,
) -> None:
    """D3, D7"""
    await attached(database)
    before = await database.fetchval("SELECT clock_timestamp()")
    claim = await begin(database)
    shown = await row(database)
    assert (shown["state"], shown["worker"], shown["retries"]) == ("processing", "w-1", 0)
    assert shown["started"] == claim.started_at
    assert shown["beat"] >= before
    assert (shown["finished"], shown["result"], shown["error"]) == (None, None, None)
    await put_back(database, claim)
    assert await row(database) == {
        "id": 1,
        "state": "pending",
        "worker": None,
        "started": None,
        "beat": None,
        "finished": None,
        "retries": 1,
        "result": None,
        "error": 'no "answer"',
    }
    claim = await begin(database)
    assert (await row(database))["error"] == 'no "answer"'
    await finish(database, claim, '{"score": 7}')
    ended = await row(database)
    assert (ended["state"], ended["worker"], ended["retries"]) == ("completed", "w-1", 1)
    assert ended["started"] == claim.started_at
    assert ended["finished"] >= claim.started_at
    assert (json.loads(ended["result"]), ended["error"]) == ({"score": 7}, None)
    await database.execute("UPDATE public.tasks SET state = 'pending'")
    await fail(database, await begin(database))
    ended = await row(database)
    assert (ended["state"], ended["retries"], ended["error"]) == ("failed", 1, 'no "answer"')


async def test_a_row_that_snoozes_keeps_its_start(database: Connection) -> None:
    await attached(database)
    claim = await begin(database)
    await put_back(database, claim, why="snooze", charged=False, error=None)
    shown = await row(database)
    assert (shown["state"], shown["worker"], shown["beat"]) == ("processing", None, None)
    assert shown["started"] == claim.started_at
    assert shown["retries"] == 0


@pytest.mark.parametrize(
    "state",
    ["public.state", "varchar(10)", "char(12)", "public.word", "public.citext"],
)
async def test_the_word_is_written_into_a_status_of_any_type(
    state: str, database: Connection
) -> None:
    """Enums, lengths, domains, extensions."""
    await database.execute("CREATE EXTENSION citext SCHEMA public")
    await database.execute("CREATE DOMAIN public.word AS varchar(10) CHECK (value ~ '^[a-z]+$')")
    await attached(database, state=state)
    await put_back(database, await begin(database))
    await fail(database, await begin(database))
    assert (await row(database))["state"].strip() == "failed"
    await database.execute("UPDATE public.tasks SET state = 'pending'")
    await finish(database, await begin(database))
    assert (await row(database))["state"].strip() == "completed"
    await no_row_is_late(database)


@pytest.mark.parametrize(
    ("type_", "result", "stored"),
    [
        ("jsonb", '{"a": [1, "ü"]}', '{"a": [1, "ü"]}'),
        ("json", '{"a":  1}', '{"a": 1}'),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("text", '"it\'s \\"fine\\""', 'it\'s "fine"'),
        ("varchar(6)", '"far too long"', "far to"),
        ("integer", "7", 7),
        ("double precision", "0.5", 0.5),
        ("boolean", "true", True),
        ("uuid", '"0b0e2e3e-7e57-4c67-9a39-6ee1e8a3a001"', None),
        ("public.citext", '"Ä"', "Ä"),
        ("jsonb NOT NULL DEFAULT '{}'", "null", "{}"),
        ("jsonb NOT NULL DEFAULT '{}'", None, "{}"),
        ("text NOT NULL DEFAULT 'own'", "null", "own"),
    ],
)
async def test_the_result_is_written_into_a_column_of_any_type(
    type_: str, result: str | None, stored: Any, database: Connection
) -> None:
    """D7; a handler that gives nothing back may have written the column itself."""
    await database.execute("CREATE EXTENSION citext SCHEMA public")
    await attached(database, result=type_)
    await finish(database, await begin(database), result)
    ended = await row(database)
    assert ended["state"] == "completed"
    assert ended["result"] == stored or (stored is None and str(ended["result"]).startswith("0b0e"))
    await no_row_is_late(database)


@pytest.mark.parametrize(
    ("type_", "stored", "cleared"),
    [
        ("text", 'no "answer"', None),
        ("varchar(5)", 'no "a', None),
        ("text NOT NULL DEFAULT ''", 'no "answer"', ""),
        ("jsonb", [json.loads(ERROR)], None),
        ("json", [json.loads(ERROR)], None),
        ("jsonb NOT NULL DEFAULT '{}'", [json.loads(ERROR)], []),
        ("public.message", 'no "answer"', None),
    ],
)
async def test_the_error_is_written_into_a_column_of_any_type(
    type_: str, stored: Any, cleared: Any, database: Connection
) -> None:
    """D7, D8: the last message as text, the whole history as JSON."""
    await database.execute("CREATE DOMAIN public.message AS text")
    await attached(database, error=type_)
    is_json = type_.startswith("json")
    await put_back(database, await begin(database))
    error = (await row(database))["error"]
    assert (json.loads(error) if is_json else error) == stored
    await finish(database, await begin(database))
    error = (await row(database))["error"]
    assert (json.loads(error) if is_json and error else error) == cleared
    await no_row_is_late(database)


async def test_what_must_not_be_null_is_kept(database: Connection) -> None:
    """Decision: put back clears worker, start and heartbeat, where that is allowed."""
    await attached(
        database,
        worker="text NOT NULL DEFAULT 'nobody'",
        time="timestamptz NOT NULL DEFAULT 'epoch'",
        retries="smallint NOT NULL DEFAULT 0",
    )
    claim = await begin(database)
    shown = await row(database)
    assert (shown["worker"], shown["started"]) == ("w-1", claim.started_at)
    await put_back(database, claim)
    shown = await row(database)
    assert (shown["state"], shown["worker"], shown["retries"]) == ("pending", "w-1", 1)
    assert shown["finished"] == datetime(1970, 1, 1, tzinfo=UTC)
    await finish(database, await begin(database))
    assert (await row(database))["finished"] >= claim.started_at
    await no_row_is_late(database)


@pytest.mark.parametrize("type_", ["timestamp", "timestamp(0)", "public.moment"])
async def test_times_without_a_zone_are_utc(type_: str, database: Connection) -> None:
    await database.execute("CREATE DOMAIN public.moment AS timestamp")
    await attached(database, time=type_)
    await database.execute("SET TimeZone = 'Asia/Kathmandu'")
    claim = await begin(database)
    started = claim.started_at.replace(tzinfo=None)
    assert abs((await row(database))["started"] - started) <= timedelta(seconds=0.5)
    stale = "SELECT stale_at FROM hybrid_runner.source_1_rows('judged', ARRAY['1'], NULL)"
    assert abs(await database.fetchval(stale) - claim.started_at) < timedelta(minutes=5)
    await finish(database, claim)
    await no_row_is_late(database)


async def test_generated_columns_and_own_triggers_do_as_ever(database: Connection) -> None:
    await database.execute(TABLE.format(**TYPES))
    await database.execute(
        "ALTER TABLE public.tasks ADD is_done boolean GENERATED ALWAYS AS (state = 'completed')"
        " STORED, ADD version integer DEFAULT 1;"
        "CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN new.version := old.version + 1; RETURN new; END';"
        "CREATE TRIGGER touch BEFORE UPDATE ON public.tasks FOR EACH ROW"
        " EXECUTE FUNCTION public.touch()"
    )
    await attach_table(database, "public.tasks", columns=COLUMNS, when=WHEN)
    await database.execute("INSERT INTO public.tasks DEFAULT VALUES")
    await finish(database, await begin(database))
    ended = await row(database)
    assert (ended["is_done"], ended["version"]) == (True, 3)


HOSTILE = 'it\'s "$1" \\ %s <<row_key new>> $source_0$ ; --'


@pytest.mark.parametrize("strings", ["on", "off"])
async def test_names_and_words_can_be_anything(strings: str, database: Connection) -> None:
    """Whatever they contain, they stay names and words."""
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    table = f"{quoted}.{quoted}"
    await database.execute(
        f"CREATE SCHEMA {quoted}; CREATE TABLE {table} ("
        f'{quoted} text PRIMARY KEY, "order" text, "user" text, "new" timestamptz, "select" jsonb)'
    )
    words = {
        name: f"{name} {HOSTILE}"
        for name in ("queued", "running", "completed", "failed", "cancelled", "snoozed")
    }
    columns = Columns(status="order", worker_id="user", started_at="new", result="select")
    await database.execute(f"SET standard_conforming_strings = {strings}")
    word = words["queued"].replace("\\", "\\\\").replace("'", "''")
    await attach_table(
        database,
        table,
        words=Words(**words),
        columns=columns,
        key=(HOSTILE,),
        when='{row}."order" = E\'' + word.replace("{", "{{").replace("}", "}}") + "'",
        queue="default",
    )
    await database.execute(f"INSERT INTO {table} VALUES ($1, $2)", "k'\\", words["queued"])
    claim = await begin(database)
    assert (await row(database, table))["order"] == words["running"]
    await finish(database, claim, "1")
    shown = await row(database, table)
    assert (shown["order"], shown["user"], shown["select"]) == (words["completed"], "w-1", "1")
    await database.execute(f'UPDATE {table} SET "order" = $1', words["queued"])
    await database.execute(f"DELETE FROM {table}")
    change = await database.fetchrow("SELECT row_key, what FROM hybrid_runner.row_changes")
    assert change is not None
    assert tuple(change) == ("k'\\", "gone")


async def test_columns_may_have_the_names_that_we_use(database: Connection) -> None:
    names = re.findall(
        r"\w+",
        "made wanted held written keys what most fresh_rows word seen fresh row_key is_checked"
        " job_ids states a j f h u w new old inserted deleted asked added found judged updated"
        " again source kind queue priority run_at payload first_block blocks error unshown ctids",
    )
    columns = ", ".join(f'"{name}" boolean DEFAULT true' for name in names)
    await database.execute(
        "CREATE TABLE public.tasks"
        f" (id bigint PRIMARY KEY, state text DEFAULT 'pending', {columns})"
    )
    await attach_table(database, "public.tasks", columns=Columns(status="state"), when=WHEN)
    await database.execute("INSERT INTO public.tasks (id) VALUES (1)")
    await put_back(database, await begin(database))
    await finish(database, await begin(database))
    await database.execute("UPDATE public.tasks SET state = 'pending'")
    await database.execute("DELETE FROM public.tasks")
    await database.execute("INSERT INTO public.tasks (id) VALUES (1), (2)")
    claims = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    await database.execute("UPDATE public.tasks SET state = 'draft' WHERE id = 2")
    shown = await source_calls.show_claims(database, [(claim.id, claim.number) for claim in claims])
    assert sorted(row.outcome for row in shown.values()) == ["unwanted", "written"]
    await database.execute("UPDATE public.tasks SET state = 'pending'")
    await claim_calls.finish_jobs(database, [Finished(c, State.COMPLETED) for c in claims])
    for what in ("read", "held", "wanted without job", "running without job"):
        await database.fetch("SELECT * FROM hybrid_runner.source_1_rows($1, '{1}', 9)", what)
    await database.execute("DELETE FROM hybrid_runner.jobs")
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(1)") == 1
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(9, 0, 9)") == 1
    await no_row_is_late(database)


async def test_the_handler_is_given_the_row_or_the_columns_named(database: Connection) -> None:
    await database.execute('CREATE TABLE public.tasks (id int PRIMARY KEY, state text, "new" text)')
    fresh = "SELECT fresh FROM hybrid_runner.source_1_rows('read', ARRAY['1'], NULL)"
    columns = Columns(status="state")
    await database.execute("INSERT INTO public.tasks VALUES (1, 'draft', 'x')")
    await attach_table(database, "public.tasks", columns=columns, when=WHEN)
    given = json.loads(await database.fetchval(fresh))
    assert given == {"id": 1, "state": "draft", "new": "x"}
    await database.execute("ALTER TABLE public.tasks ADD later int DEFAULT 7")
    assert json.loads(await database.fetchval(fresh)) == {**given, "later": 7}
    await attach_table(database, "public.tasks", columns=columns, when=WHEN, payload=("new", "id"))
    assert json.loads(await database.fetchval(fresh)) == {"id": 1, "new": "x"}


async def test_rows_of_a_partitioned_table_are_worked_on_wherever_they_are(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    """Partition moves, DETACH PARTITION; statement trigger on a partitioned parent."""
    await database.execute(
        "CREATE TABLE public.tasks (id bigint, day date, state text DEFAULT 'pending',"
        " PRIMARY KEY (id, day)) PARTITION BY RANGE (day);"
        "CREATE TABLE public.early PARTITION OF public.tasks"
        " FOR VALUES FROM (MINVALUE) TO ('2026-01-01')"
    )
    await attach_table(
        database,
        "public.tasks",
        columns=Columns(status="state"),
        when=WHEN,
        key=("id", "day"),
        cancel="{row}.state = 'cancelled'",
    )
    await database.execute(
        "CREATE TABLE public.late PARTITION OF public.tasks"
        " FOR VALUES FROM ('2026-01-01') TO (MAXVALUE)"
    )
    await database.execute("INSERT INTO public.tasks VALUES (1, '2025-01-01'), (2, '2026-01-01')")
    await database.execute("INSERT INTO public.early VALUES (3, '2025-01-01')")
    await database.execute("INSERT INTO public.late VALUES (4, '2026-01-01'), (5, '2026-01-01')")
    await database.execute("UPDATE public.late SET state = 'cancelled' WHERE id = 5")
    # becomes another row, by way of a DELETE and an INSERT
    await database.execute("UPDATE public.tasks SET day = '2026-05-05' WHERE id = 3")
    found = await database.fetch("SELECT row_key FROM hybrid_runner.jobs ORDER BY id")
    assert [json.loads(job[0]) for job in found] == [
        [1, "2025-01-01"],
        [2, "2026-01-01"],
        [3, "2025-01-01"],
        [4, "2026-01-01"],
        [5, "2026-01-01"],
        [3, "2026-05-05"],
    ]
    noted = "SELECT row_key, what FROM hybrid_runner.row_changes ORDER BY id"
    assert [(json.loads(change[0])[0], change[1]) for change in await database.fetch(noted)] == [
        (5, "cancelled"),
        (3, "gone"),
    ]
    claims = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number) for claim in claims])
    assert [shown[claim.id].outcome for claim in claims] == [
        "written",
        "written",
        "gone",
        "written",
        "unwanted",
        "written",
    ]
    ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
    assert len(await claim_calls.finish_jobs(database, ends)) == 6
    states = await database.fetch("SELECT state FROM public.tasks ORDER BY id")
    assert [state[0] for state in states] == [*["completed"] * 4, "cancelled"]
    await database.execute("UPDATE public.tasks SET state = 'pending' WHERE id IN (2, 4)")
    await database.execute("DELETE FROM public.tasks WHERE id = 2")
    assert (await database.fetch(noted))[-1]["what"] == "gone"
    await database.execute("ALTER TABLE public.tasks DETACH PARTITION public.late")
    await database.execute("INSERT INTO public.late VALUES (9, '2026-01-01')")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 2
    await no_row_is_late(database)


async def test_a_row_that_moves_to_another_partition_and_is_cancelled_is_noted(
    database: Connection,
) -> None:
    """Partition moves"""
    await database.execute(
        "CREATE TABLE public.tasks (id bigint, state text DEFAULT 'pending')"
        " PARTITION BY LIST (state);"
        "CREATE TABLE public.pending PARTITION OF public.tasks FOR VALUES IN ('pending');"
        "CREATE TABLE public.others PARTITION OF public.tasks DEFAULT"
    )
    await attach_table(
        database,
        "public.tasks",
        columns=Columns(status="state"),
        when=WHEN,
        cancel="{row}.state = 'cancelled'",
    )
    await database.execute("INSERT INTO public.tasks VALUES (1), (2)")
    # Whoever is told that one is gone looks whether it is.
    await database.execute("UPDATE public.tasks SET state = 'cancelled' WHERE id = 1")
    noted = await database.fetch("SELECT row_key, what FROM hybrid_runner.row_changes")
    assert sorted(map(tuple, noted)) == [("1", "cancelled"), ("1", "gone")]
    await database.execute("DELETE FROM hybrid_runner.jobs WHERE row_key = '1'")
    claim = await begin(database)
    await finish(database, claim)
    assert await database.fetchval("SELECT state FROM public.others WHERE id = 2") == "completed"
    await database.execute("UPDATE public.tasks SET state = 'pending' WHERE id = 2")
    await finish(database, await begin(database))
    await no_row_is_late(database)


async def test_rows_of_a_table_that_inherits_are_worked_on_however_they_are_changed(
    database: Connection,
) -> None:
    await database.execute(
        "CREATE TABLE public.things (id bigint, state text DEFAULT 'pending');"
        "CREATE TABLE public.tasks (PRIMARY KEY (id)) INHERITS (public.things)"
    )
    await attach_table(database, "public.tasks", columns=Columns(status="state"), when=WHEN)
    await database.execute("INSERT INTO public.things VALUES (1)")
    await database.execute("INSERT INTO public.tasks VALUES (2, 'draft')")
    await database.execute("UPDATE public.things SET state = 'pending'")
    keys = "SELECT string_agg(row_key, ' ') FROM hybrid_runner.jobs"
    assert await database.fetchval(keys) == "2"
    await database.execute("DELETE FROM public.things")
    assert await database.fetchval("SELECT what FROM hybrid_runner.row_changes") == "gone"


async def test_own_triggers_find_names_as_they_do_for_the_application(
    database: Connection,
) -> None:
    """Functions of triggers that name no schema, and set no path."""
    await database.execute(TABLE.format(**TYPES))
    await database.execute(
        "SET search_path = public;"
        "CREATE TABLE public.counts (state text, number integer DEFAULT 0);"
        "INSERT INTO public.counts VALUES ('processing'), ('completed');"
        "CREATE FUNCTION public.is_known(text) RETURNS boolean LANGUAGE sql"
        " AS 'SELECT EXISTS (SELECT FROM counts WHERE state = $1)';"
        "CREATE FUNCTION public.check_state() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN ASSERT is_known(new.state); RETURN new; END';"
        "CREATE FUNCTION public.count_states() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN UPDATE counts SET number = number + 1 WHERE state = new.state; RETURN null; END';"
        "CREATE TRIGGER check_state BEFORE UPDATE ON public.tasks FOR EACH ROW"
        " EXECUTE FUNCTION public.check_state();"
        "CREATE TRIGGER count_states AFTER UPDATE ON public.tasks FOR EACH ROW"
        " EXECUTE FUNCTION public.count_states();"
        "SET search_path = pg_catalog, pg_temp"
    )
    await attach_table(database, "public.tasks", columns=COLUMNS, when=WHEN)
    for number in (1, 2, 3):
        await database.execute("INSERT INTO public.tasks DEFAULT VALUES")
        await finish(database, await begin(database))
        counts = await database.fetch("SELECT number FROM public.counts")
        assert [count[0] for count in counts] == [number, number]
    assert await database.fetchval("SHOW search_path") == "pg_catalog, pg_temp"
    await no_row_is_late(database)


async def test_nobody_who_can_create_in_the_application_s_schema_runs_code_as_its_owner(
    database: Connection,
) -> None:
    """What we have written is read with our own path: operators of others are not found."""
    await database.execute(
        "CREATE TABLE public.tasks (id varchar(9) PRIMARY KEY, state varchar(20), worker text)"
    )
    columns = Columns(status="state", worker_id="worker")
    await attach_table(database, "public.tasks", columns=columns, when=WHEN)
    await database.execute(
        "CREATE FUNCTION public.evil(varchar, text) RETURNS boolean LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''captured''; END';"
        "CREATE FUNCTION public.evil(varchar, varchar) RETURNS boolean LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''captured''; END';"
        "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = public.evil);"
        "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.evil);"
    )
    await database.execute("INSERT INTO public.tasks VALUES ('a', 'pending'), ('b', 'draft')")
    await database.execute("SET search_path = public, pg_catalog")
    with pytest.raises(Exception, match="captured"):
        await database.fetch("SELECT FROM public.tasks AS t WHERE t.id = t.state::text")
    await database.execute("SET search_path = pg_catalog, pg_temp")
    await put_back(database, await begin(database))
    await finish(database, await begin(database))
    await database.execute("UPDATE public.tasks SET state = 'pending'")
    await database.execute("UPDATE public.tasks SET state = 'draft' WHERE id = 'a'")
    claims = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", 1)).claims
    shown = await source_calls.show_claims(database, [(claim.id, claim.number) for claim in claims])
    assert sorted(row.outcome for row in shown.values()) == ["unwanted", "written"]
    await claim_calls.finish_jobs(database, [Finished(c, State.COMPLETED) for c in claims])
    late = "SELECT * FROM hybrid_runner.source_1_rows('running without job', '{}', 9)"
    assert await database.fetch(late) == []
    await no_row_is_late(database)
