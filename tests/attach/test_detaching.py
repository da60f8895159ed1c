"""Tables are detached, and are as they were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import (
    Columns,
    ConfigurationError,
    DatabaseError,
    JobCancelled,
    Runner,
    RunnerError,
)
from hybrid_runner.attach import detaching
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, source_calls, source_records
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.own_tables import ASKED, ORDERS, dumped, made_for_sources, run_by_psql
from tests.support.waiting import until

KINDS = claim_calls.Kinds([claim_calls.KindLimits("order", 3, None)])
TABLES = {
    "plain": ORDERS,
    "with a trigger, policies and grants of its own": ORDERS
    + """;
        CREATE FUNCTION public.touched() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN new.worker := new.worker; RETURN new; END';
        CREATE TRIGGER touched BEFORE UPDATE ON public.orders FOR EACH ROW
        EXECUTE FUNCTION public.touched();
        ALTER TABLE public.orders ENABLE ROW LEVEL SECURITY;
        CREATE POLICY urgent ON public.orders FOR SELECT USING (urgent);
        GRANT SELECT, INSERT ON public.orders TO PUBLIC;
        CREATE INDEX waiting ON public.orders (id) WHERE status = 'waiting';
        COMMENT ON TABLE public.orders IS 'of the shop'
    """,
    "partitioned": """
        CREATE TABLE public.orders (
            id bigint NOT NULL, status text DEFAULT 'waiting', urgent boolean, worker text,
            result jsonb, PRIMARY KEY (id)
        ) PARTITION BY RANGE (id);
        CREATE TABLE public.orders_1 PARTITION OF public.orders FOR VALUES FROM (1) TO (100);
        CREATE TABLE public.orders_2 PARTITION OF public.orders FOR VALUES FROM (100) TO (200)
    """,
}


@pytest.fixture
async def app(dsn: str, database: Connection) -> AsyncIterator[Runner]:
    await database.execute(ORDERS)
    async with Runner(dsn) as app:
        yield app


async def statuses(database: Connection) -> list[str]:
    rows = await database.fetch("SELECT status FROM public.orders ORDER BY id")
    return [row[0] for row in rows]


async def states(database: Connection) -> list[str]:
    rows = await database.fetch("SELECT state::text FROM hybrid_runner.archive ORDER BY id")
    return [row[0] for row in rows]


async def begin(database: Connection, most: int = 10) -> list[Claim]:
    """Claim, and show it in the rows."""
    found = await claim_calls.claim_jobs(database, "default", KINDS, most, "worker-1", 1)
    await source_calls.show_claims(database, [(claim.id, claim.number) for claim in found.claims])
    return found.claims


async def end(database: Connection, claim: Claim) -> None:
    await claim_calls.finish_jobs(database, [Finished(claim, State.COMPLETED, result="1")])


@asynccontextmanager
async def writing(app: Runner) -> AsyncIterator[None]:
    """A worker that has no handler for the table's kind, and writes late rows."""

    @app.job("other", queue="other")
    async def other(_: Any) -> None: ...

    async with app.worker():
        yield


@pytest.mark.parametrize("table", TABLES)
async def test_a_detached_table_is_byte_for_byte_what_it_was(
    table: str, dsn: str, database: Connection
) -> None:
    await database.execute(TABLES[table])
    await database.execute("INSERT INTO public.orders (id) OVERRIDING SYSTEM VALUE VALUES (1), (2)")
    before, with_all = dumped(dsn, "--table=public.orders*"), dumped(dsn, "--schema-only")
    async with Runner(dsn) as app:
        await app.attach("orders", **ASKED)
        assert dumped(dsn, "--table=public.orders*") != before
        detached = await app.detach("orders")
        assert (detached.table, detached.cancelled, detached.notes) == ("public.orders", 2, ())
        assert await app.sources() == []
    assert dumped(dsn, "--table=public.orders*") == before
    assert await made_for_sources(database) == []
    assert dumped(dsn, "--schema-only") == with_all


async def test_names_of_any_kind_are_attached_by_script_and_detached(
    dsn: str, database: Connection
) -> None:
    """Names with blanks, dots, quotes, capitals, and words of SQL."""
    await database.execute(
        """
        CREATE SCHEMA "Odd.Schema";
        CREATE TABLE "Odd.Schema"."or""der's" (
            "user" text, "group id" integer, "Status" text DEFAULT 'waiting', "select" text,
            PRIMARY KEY ("user", "group id")
        );
        INSERT INTO "Odd.Schema"."or""der's" VALUES ('a', 1), ('b''; --', 2)
        """
    )
    name = '"Odd.Schema"."or""der\'s"'
    columns = Columns(status="Status", worker_id="select")
    before = dumped(dsn, "--schema-only")
    async with Runner(dsn) as app:
        asked = ASKED | {"columns": columns, "when": '"group id" > 0'}
        script = (await app.attach(name, **asked, sql=True)).sql or ""
        run_by_psql(dsn, script)
        by_script = await made_for_sources(database)
        attached = await app.attach(name, **asked)
        assert attached.table == name
        assert await made_for_sources(database) == by_script
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 2
        for claim in await begin(database):
            await end(database, claim)
        assert (await app.source(name)).complaints == []
        assert (await app.detach(name)).table == name
    words = await database.fetch(f'SELECT "Status" FROM {name} ORDER BY 1')
    assert [row[0] for row in words] == ["done", "done"]
    assert dumped(dsn, "--schema-only") == before


async def test_queued_jobs_end_and_their_rows_keep_the_queued_word(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    await app.detach("orders")
    assert await statuses(database) == ["waiting"]
    assert await states(database) == ["cancelled"]
    [summary] = await app.list_jobs()
    assert "public.orders was detached" in str(summary.error)


async def test_a_job_of_a_detached_table_that_somebody_retries_is_cancelled(
    app: Runner, database: Connection
) -> None:
    @app.job("order")
    async def order(payload: dict[str, Any]) -> None:
        raise AssertionError("nobody can read its row")

    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    await app.detach("orders")
    [summary] = await app.list_jobs()
    assert await app.retry(summary.id) == "queued"
    async with app.worker():
        with pytest.raises(JobCancelled, match="its table is no longer attached"):
            await app.handle(summary.id).wait("120s")
    assert await statuses(database) == ["waiting"]


async def test_the_row_of_a_job_that_snoozes_has_the_queued_word_again(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    [claim] = await begin(database)
    await claim_calls.requeue_jobs(
        database, [Requeued(claim, timedelta(hours=1), charged=False, why="snooze")]
    )
    assert await statuses(database) == ["working"]
    with pytest.raises(RunnerError) as refusal:
        await app.detach("orders", wait=0)
    assert str(refusal.value) == (
        "public.orders is not detached yet: its triggers are gone, but rows do not show yet what"
        " became of their jobs: 1; no worker is there to write them: start one, and detach again"
    )
    assert await statuses(database) == ["working"]
    async with writing(app):
        await app.detach("orders")
    assert await statuses(database) == ["waiting"]
    assert await states(database) == ["cancelled"]


async def test_a_running_job_is_waited_for_and_shown_in_its_row(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    [claim] = await begin(database)
    detaching_it = asyncio.create_task(app.detach("orders"))
    await until(
        lambda: database.fetchval("SELECT detaching_at IS NOT NULL FROM hybrid_runner.sources")
    )
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    await end(database, claim)
    await detaching_it
    assert await statuses(database) == ["done", "waiting"]
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_what_has_not_ended_in_time_is_said_and_detaching_again_goes_on(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    [claim] = await begin(database)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    with pytest.raises(RunnerError) as refusal:
        await app.detach("orders", wait=0)
    assert str(refusal.value) == (
        "public.orders is not detached yet: its triggers are gone, but running jobs are left: 1"
        f" (job {claim.id} on worker worker-1); detach again once they have ended, or tell them"
        " to stop with --cancel-jobs"
    )
    [view] = await app.sources()
    assert (view.queued, view.running, view.triggers) == (0, 1, ())
    assert view.complaints == [
        "it is being detached: detach it again once its last jobs have ended"
    ]
    await end(database, claim)
    assert (await app.detach("orders")).cancelled == 0
    assert await statuses(database) == ["done", "waiting"]
    assert await made_for_sources(database) == []


async def test_running_jobs_are_told_to_stop_if_that_is_asked_for(
    app: Runner, dsn: str, database: Connection
) -> None:
    began = asyncio.Event()

    @app.job("order")
    async def order(payload: dict[str, Any]) -> None:
        began.set()
        await asyncio.Event().wait()

    await app.attach("orders", **ASKED)
    async with app.worker():
        await database.execute("INSERT INTO public.orders DEFAULT VALUES")
        await began.wait()
        await app.detach("orders", cancel_jobs=True)
    assert await statuses(database) == ["broken"]
    assert await states(database) == ["cancelled"]


async def test_whoever_holds_the_table_is_named(
    app: Runner, dsn: str, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    holder = await connect(dsn)
    await holder.execute("BEGIN; INSERT INTO public.orders DEFAULT VALUES")
    with pytest.raises(DatabaseError) as refusal:
        await app.detach("orders", wait=0)
    assert f"since session {holder.get_server_pid()} (" in str(refusal.value)
    assert str(refusal.value).endswith("and detach again")
    [view] = await app.sources()
    assert (view.detaching_at, view.complaints) == (None, [])
    await holder.close()


async def test_held_row_is_waited_for_and_written_by_a_worker(
    app: Runner, dsn: str, database: Connection
) -> None:
    """Section 6: row locked by a form."""
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    [claim] = await begin(database)
    detaching_it = asyncio.create_task(app.detach("orders"))
    await until(
        lambda: database.fetchval("SELECT detaching_at IS NOT NULL FROM hybrid_runner.sources")
    )
    holder = await connect(dsn)
    await holder.execute("BEGIN; SELECT FROM public.orders FOR UPDATE")
    await end(database, claim)
    async with writing(app):
        with pytest.raises(RunnerError) as refusal:
            await app.detach("orders", wait=0)
        assert str(refusal.value) == (
            "public.orders is not detached yet: its triggers are gone, but rows do not show yet"
            " what became of their jobs: 1 (somebody holds the row); detach again once a worker has"
            " written them"
        )
        await holder.execute("COMMIT")
        assert (await detaching_it).notes == ()
    assert await statuses(database) == ["done"]
    await holder.close()


async def test_a_row_that_postgres_refuses_does_not_keep_a_table_attached(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    [claim] = await begin(database)
    await database.execute("ALTER TABLE public.orders ADD CONSTRAINT open CHECK (result IS NULL)")
    await end(database, claim)
    detached = await app.detach("orders")
    [note] = detached.notes
    assert note.startswith("rows that do not show what became of their jobs: 1 (")
    assert "violates check constraint" in note
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0
    assert await statuses(database) == ["working"]


async def test_a_table_that_is_gone_can_be_detached_by_the_name_that_it_had(
    app: Runner, database: Connection
) -> None:
    """Section 6: table dropped."""
    await app.attach("orders", **ASKED)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    await database.execute("DROP TABLE public.orders")
    [view] = await app.sources()
    assert (view.table, view.complaints) == ("public.orders", ["the table is gone: detach it"])
    detached = await app.detach("orders")
    assert (detached.table, detached.cancelled) == ("public.orders", 1)
    assert await made_for_sources(database) == []


async def test_a_table_that_was_renamed_is_found_by_either_name(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await database.execute('ALTER TABLE public.orders RENAME TO "Order Book"')
    for name in ("orders", "public.orders", '"Order Book"', 'public."Order Book"', "1"):
        assert (await app.source(name)).id == 1
    assert (await app.detach('"Order Book"')).table == 'public."Order Book"'
    assert await made_for_sources(database) == []


async def test_of_two_sources_on_one_table_one_is_named_by_its_kind(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    await app.attach("orders", **ASKED | {"kind": "hurry"})
    with pytest.raises(ConfigurationError) as refusal:
        await app.detach("orders")
    assert str(refusal.value) == (
        "orders is attached 2 times: name the source by its number, 1 (kind order) or 2 (kind"
        " hurry)"
    )
    await app.detach("orders", kind="order")
    assert [view.kind for view in await app.sources()] == ["hurry"]
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    assert await database.fetchval("SELECT kind FROM hybrid_runner.jobs") == "hurry"
    await app.detach("2")
    assert await made_for_sources(database) == []


@pytest.mark.parametrize("name", ["nowhere", "other.orders", "7", "a b", "", "'", "a.b.c.d"])
async def test_what_is_not_attached_is_one_line(app: Runner, name: str) -> None:
    for call in (app.detach, app.source):
        with pytest.raises(RunnerError) as refusal:
            await call(name)
        assert "\n" not in str(refusal.value)
    await app.attach("orders", **ASKED)
    with pytest.raises(RunnerError) as refusal:
        await app.detach(name)
    assert "\n" not in str(refusal.value)
    assert len(await app.sources()) == 1


async def test_a_table_that_is_attached_again_meanwhile_stays_attached(
    app: Runner, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.attach("orders", **ASKED)

    async def left_of_source(on: Connection, source: int) -> Any:
        left = await source_records.left_of_source(on, source)
        await app.attach("orders", **ASKED)
        return left

    with monkeypatch.context() as patched:
        calls = type("calls", (), dict(vars(source_records), left_of_source=left_of_source))
        patched.setattr(detaching, "source_records", calls)
        with pytest.raises(RunnerError, match="was attached again meanwhile: it stays attached"):
            await app.detach("orders")
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 1
    assert [view.complaints for view in await app.sources()] == [[]]
