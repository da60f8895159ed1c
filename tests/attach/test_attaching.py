"""Tables are attached, attached anew, checked, and attached by a script."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, DatabaseError, Runner
from hybrid_runner.attach import attaching, rendering
from hybrid_runner.storage import row_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.own_tables import (
    ASKED,
    ORDERS,
    dumped,
    made_for_sources,
    run_by_psql,
)
from tests.support.server import Databases
from tests.support.waiting import until


@pytest.fixture
async def app(dsn: str, database: Connection) -> AsyncIterator[Runner]:
    await database.execute(ORDERS)
    async with Runner(dsn) as app:
        yield app


async def jobs(database: Connection) -> list[tuple[Any, ...]]:
    rows = await database.fetch(
        "SELECT source, row_key, kind, queue, priority FROM hybrid_runner.jobs ORDER BY id"
    )
    return [tuple(row) for row in rows]


async def test_rows_that_wait_and_new_ones_become_jobs(app: Runner, database: Connection) -> None:
    """D1."""
    await database.execute(
        "INSERT INTO public.orders (status) VALUES ('waiting'), ('done'), ('waiting')"
    )
    attached = await app.attach("orders", **ASKED)
    assert (attached.id, attached.table, attached.queued) == (1, "public.orders", 2)
    assert attached.is_kept
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    await database.execute("UPDATE public.orders SET status = 'waiting' WHERE status = 'done'")
    assert await jobs(database) == [(1, key, "order", "default", 5) for key in ("1", "3", "4", "2")]


async def test_the_queue_is_that_of_the_handler(app: Runner, database: Connection) -> None:
    @app.job("order", queue="orders")
    async def order(payload: dict[str, Any]) -> None:
        pass

    attached = await app.attach("orders", **ASKED | {"kind": order})
    assert (attached.kind, attached.queue) == ("order", "orders")
    assert (await app.attach("orders", **ASKED)).queue == "orders"
    assert (await app.attach("orders", **ASKED, queue="own")).queue == "own"
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    assert await jobs(database) == [(1, "1", "order", "own", 5)]


async def test_attached_again_everything_is_made_anew_under_the_same_number(
    app: Runner, database: Connection
) -> None:
    await app.attach("orders", **ASKED)
    before = await made_for_sources(database)
    assert (await app.attach("orders", **ASKED)).id == 1
    assert await made_for_sources(database) == before
    asked = ASKED | {"priority": "CASE WHEN urgent THEN 0 ELSE 7 END", "on_delete": "ignore"}
    assert (await app.attach("public.orders", **asked)).id == 1
    [view] = await app.sources()
    assert view.triggers == ("hybrid_runner_1_insert", "hybrid_runner_1_update")
    assert view.definition["on_delete"] == "ignore"
    await database.execute("INSERT INTO public.orders (urgent) VALUES (true), (false)")
    assert [job[-1] for job in await jobs(database)] == [0, 7]
    assert (await app.attach("orders", **ASKED)).id == 1
    assert await made_for_sources(database) == before


async def test_one_table_can_be_attached_for_two_kinds(app: Runner, database: Connection) -> None:
    """Section 6: two sources on one table."""
    await app.attach("orders", **ASKED, when="NOT urgent")
    await app.attach("orders", **ASKED | {"kind": "hurry"}, when="urgent")
    await database.execute("INSERT INTO public.orders (urgent) VALUES (true), (false)")
    assert [(job[0], job[1], job[2]) for job in await jobs(database)] in (
        [(1, "2", "order"), (2, "1", "hurry")],
        [(2, "1", "hurry"), (1, "2", "order")],
    )
    assert [(view.id, view.kind) for view in await app.sources()] == [(1, "order"), (2, "hurry")]


async def test_a_check_changes_nothing(app: Runner, dsn: str, database: Connection) -> None:
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    before = dumped(dsn, "--schema-only")
    attached = await app.attach("orders", **ASKED, check=True)
    assert (attached.is_kept, attached.queued, attached.sql) == (False, 0, None)
    assert dumped(dsn, "--schema-only") == before
    assert await made_for_sources(database) == []
    assert await jobs(database) == []


async def test_what_is_refused_leaves_nothing_behind(
    app: Runner, dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dumped(dsn, "--schema-only")
    with pytest.raises(ConfigurationError, match="nowhere"):
        await app.attach("orders", **ASKED, when="nowhere = 1")
    made = rendering.attaching
    monkeypatch.setattr(attaching, "attaching", lambda source: [*made(source), "SELECT 1 / 0"])
    with pytest.raises(DatabaseError, match="division by zero"):
        await app.attach("orders", **ASKED)
    assert dumped(dsn, "--schema-only") == before
    assert await app.sources() == []


async def test_the_script_does_what_attach_does(
    app: Runner, dsn: str, database: Connection, databases: Databases, template: str
) -> None:
    asked = ASKED | {"when": r"status <> 'it''s \ $1'", "priority": "CASE WHEN urgent THEN 1 END"}
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    attached = await app.attach("orders", **asked, sql=True)
    assert attached.sql is not None
    assert not attached.is_kept
    assert await made_for_sources(database) == []
    run_by_psql(dsn, attached.sql)
    by_script = await made_for_sources(database)
    assert [job[:3] for job in await jobs(database)] == [(1, "1", "order")]
    run_by_psql(dsn, attached.sql)
    assert await made_for_sources(database) == by_script
    assert len(await jobs(database)) == 1
    with databases.fresh(template) as other:
        connection = await connect(other)
        await connection.execute(ORDERS)
        async with Runner(other) as beside:
            await beside.attach("orders", **asked)
        assert await made_for_sources(connection) == by_script
        await connection.close()


async def test_the_script_queues_the_rows_of_a_large_table(
    app: Runner, dsn: str, database: Connection
) -> None:
    """Block by block, so that it is read once."""
    await database.execute("INSERT INTO public.orders SELECT FROM generate_series(1, 20000)")
    script = (await app.attach("orders", **ASKED, sql=True)).sql or ""
    assert "BY 64 LOOP" in script
    run_by_psql(dsn, script)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 20000


async def test_a_script_is_of_no_use_once_somebody_else_has_attached_the_table(
    app: Runner, dsn: str, database: Connection
) -> None:
    script = (await app.attach("orders", **ASKED, sql=True)).sql or ""
    assert (await app.attach("orders", **ASKED)).id == 2
    with pytest.raises(AssertionError, match="print this script again"):
        run_by_psql(dsn, script)
    assert [view.id for view in await app.sources()] == [2]


async def test_whoever_holds_the_table_is_named(
    app: Runner, dsn: str, database: Connection
) -> None:
    holder = await connect(dsn)
    await holder.execute("BEGIN; INSERT INTO public.orders DEFAULT VALUES")
    with pytest.raises(DatabaseError) as refusal:
        await app.attach("orders", **ASKED, wait="1s")
    said = str(refusal.value)
    assert said.startswith(f"gave up after 1 s, since session {holder.get_server_pid()} (")
    assert said.endswith(
        f"SELECT pg_terminate_backend({holder.get_server_pid()}), and attach again"
    )
    assert await made_for_sources(database) == []
    await holder.close()


async def test_attach_goes_on_once_the_table_is_free(
    app: Runner, dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    holder = await connect(dsn)
    await holder.execute("BEGIN; INSERT INTO public.orders DEFAULT VALUES")
    attaching_it = asyncio.create_task(app.attach("orders", **ASKED))
    await until(lambda: f"waiting for a lock that session {holder.get_server_pid()}" in caplog.text)
    await holder.execute("COMMIT")
    assert (await attaching_it).queued == 1
    await holder.close()


async def test_rows_inserted_meanwhile_are_not_lost(
    app: Runner, dsn: str, database: Connection
) -> None:
    """Whoever inserts while the table is being attached meets the trigger or the backfill."""
    stop = asyncio.Event()

    async def insert() -> int:
        connection, count = await connect(dsn), 0
        while not stop.is_set():
            await connection.execute("INSERT INTO public.orders DEFAULT VALUES")
            count += 1
        await connection.close()
        return count

    inserting = [asyncio.create_task(insert()) for _ in range(3)]
    await until(lambda: database.fetchval("SELECT count(*) FROM public.orders"), lambda n: n > 20)
    await app.attach("orders", **ASKED)
    after = await database.fetchval("SELECT count(*) FROM public.orders")
    await until(
        lambda: database.fetchval("SELECT count(*) FROM public.orders"), lambda n: n > after + 20
    )
    stop.set()
    inserted = sum(await asyncio.gather(*inserting))
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == inserted


async def test_a_backfill_goes_batch_by_batch_and_on_when_it_was_broken_off(
    app: Runner, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.execute("INSERT INTO public.orders SELECT FROM generate_series(1, 7)")
    monkeypatch.setattr(attaching, "BATCH", 3)
    batches: list[int] = []

    async def want_rows(on: Connection, source: int, most: int, *more: int) -> int:
        if len(batches) == 1:
            batches.append(0)
            raise ConnectionError("broken off")
        batches.append(await row_calls.want_rows(on, source, most))
        return batches[-1]

    monkeypatch.setattr(attaching, "want_rows", want_rows)
    with pytest.raises(ConnectionError, match="broken off"):
        await app.attach("orders", **ASKED)
    assert len(await jobs(database)) == 3
    assert (await app.attach("orders", **ASKED)).queued == 4
    assert batches == [3, 0, 3, 1]
    assert len({job[1] for job in await jobs(database)}) == 7


async def test_a_backfill_of_a_large_table_reads_it_once(
    app: Runner, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.execute("INSERT INTO public.orders SELECT FROM generate_series(1, 2000)")
    monkeypatch.setattr(attaching, "BLOCKS", 4)
    batches: list[tuple[int, ...]] = []

    async def want_rows(on: Connection, source: int, most: int, *more: int) -> int:
        batches.append((*more, await row_calls.want_rows(on, source, most, *more)))
        return batches[-1][-1]

    monkeypatch.setattr(attaching, "want_rows", want_rows)
    assert (await app.attach("orders", **ASKED)).queued == 2000
    assert len(batches) > 3
    assert batches[-1] == (0,)
    assert all(batch[1] == 4 and batch[2] < 1000 for batch in batches[:-1])


async def test_without_a_backfill_rows_that_wait_are_left_and_it_is_said(
    app: Runner, database: Connection
) -> None:
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    attached = await app.attach("orders", **ASKED, backfill="none")
    assert attached.queued == 0
    assert any("rows that were missed are not looked for" in note for note in attached.notes)
    assert await jobs(database) == []
    [view] = await app.sources()
    assert not view.is_reconciled


async def test_a_table_that_was_renamed_is_mended_by_attaching_it_again(
    app: Runner, database: Connection
) -> None:
    """Section 6: table renamed."""
    await app.attach("orders", **ASKED)
    await database.execute("ALTER TABLE public.orders RENAME TO bookings")
    [view] = await app.sources()
    assert (view.table, view.attached_as) == ("public.bookings", "public.orders")
    assert view.complaints == ["it was attached as public.orders: attach it again"]
    assert (await app.attach("bookings", **ASKED)).id == 1
    [view] = await app.sources()
    assert view.complaints == []
    await database.execute("INSERT INTO public.bookings DEFAULT VALUES")
    assert await database.fetchval("SELECT hybrid_runner.want_rows(1, 10)") == 0
    assert len(await jobs(database)) == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DROP COLUMN worker", "worker"),
        ("RENAME COLUMN status TO state", "status"),
        ("ADD CHECK (status <> 'broken')", "'broken'"),
    ],
)
async def test_a_table_that_no_longer_is_what_it_was_says_why(
    app: Runner, database: Connection, change: str, fault: str
) -> None:
    """Section 6: column dropped or renamed."""
    await app.attach("orders", **ASKED)
    assert (await app.source("orders")).complaints == []
    await database.execute(f"ALTER TABLE public.orders {change}")
    view = await app.source("orders")
    assert fault in (view.fault or "")
    [said] = view.complaints
    assert said.startswith("the table is no longer what it was, attach it again: ")
    assert "\n" not in said


async def test_disabled_triggers_are_complained_of(app: Runner, database: Connection) -> None:
    """Section 6: disabled triggers."""
    await app.attach("orders", **ASKED)
    await database.execute("ALTER TABLE public.orders DISABLE TRIGGER hybrid_runner_1_insert")
    [view] = await app.sources()
    name = "hybrid_runner_1_insert"
    assert view.complaints == [
        f"trigger {name} is disabled: ALTER TABLE public.orders ENABLE TRIGGER {name}"
    ]
    await database.execute("DROP TRIGGER hybrid_runner_1_update ON public.orders")
    assert "hybrid_runner_1_update" not in (await app.sources())[0].triggers


async def test_two_who_attach_at_once_make_one_source(app: Runner, database: Connection) -> None:
    done = await asyncio.gather(
        *(app.attach("orders", **ASKED) for _ in range(4)), return_exceptions=True
    )
    failed = [one for one in done if isinstance(one, BaseException)]
    assert all(isinstance(one, DatabaseError) for one in failed), failed
    assert len(failed) < 4
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")
    [view] = await app.sources()
    assert [job[0] for job in await jobs(database)] == [view.id]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wen": "true"}, "attach has no option 'wen': did you mean 'when'?"),
        ({"check": True, "sql": True}, "either `check` or `sql`"),
        (
            {"words": {"queued": "a"}},
            "name --running, --completed and --failed (fields of Words), or add --guess",
        ),
        ({"columns": {"stat": "a"}}, "columns has no field 'stat'"),
        ({"columns": None}, "name --status (fields of Columns), or add --guess"),
        ({"key": ""}, "key must name columns"),
    ],
)
async def test_what_cannot_be_asked_for_is_one_line(
    app: Runner, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        await app.attach("orders", **ASKED | options)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("body", "word"),
    [("RETURN NULL;", "undoes it"), ("RAISE 'not today';", "refuses it"), ("RETURN new;", None)],
)
async def test_check_tries_a_wanted_row_and_says_what_a_trigger_does(
    database: Connection, dsn: str, body: str, word: str | None
) -> None:
    """In a transaction that is rolled back."""
    await database.execute(
        f"{ORDERS}; CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {body} END $$; CREATE TRIGGER keep BEFORE UPDATE ON public.orders"
        " FOR EACH ROW EXECUTE FUNCTION public.keep();"
        "INSERT INTO public.orders DEFAULT VALUES"
    )
    async with Runner(dsn) as app:
        attached = await app.attach("orders", **ASKED, check=True)
    said = [note for note in attached.notes if "a row was tried" in note]
    assert len(said) == (word is not None)
    assert all(word is not None and word in note for note in said)
    assert await database.fetchval("SELECT status FROM public.orders") == "waiting"
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0
