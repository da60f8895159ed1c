"""Whoever changes services by plain SQL is heard at once, and holds nobody up."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import asyncpg
import pytest

from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import ADD_MANY, add, play

SIGNALS = "SELECT key FROM hybrid_runner.signals ORDER BY id"
OPENED = "SELECT payload::text FROM hybrid_runner.jobs WHERE kind = 'monitors.open' ORDER BY id"
FORGET = "DELETE FROM hybrid_runner.signals"
ADD = "INSERT INTO hybrid_monitors.services (name, url) VALUES ($1, $2)"


async def signalled(on: Connection) -> set[str]:
    """For which keys signals were sent since the last call."""
    keys = {row[0] for row in await on.fetch(SIGNALS)}
    await on.execute(FORGET)
    return keys


async def opened(on: Connection) -> list[str]:
    """Which hosts are to get jobs."""
    return [host for row in await on.fetch(OPENED) for host in json.loads(row[0])["hosts"]]


@pytest.fixture
async def editor(monitors_dsn: str) -> AsyncIterator[Connection]:
    """Somebody who may edit, and no more."""
    connection = await connect(monitors_dsn)
    await connection.execute("SET ROLE hybrid_monitors_editor")
    yield connection
    await connection.close()


async def test_each_way_to_change_services_is_heard(
    monitored: Connection, editor: Connection
) -> None:
    await editor.execute(ADD, "a", "http://A.internal/")
    assert await signalled(monitored) == {"monitors:a.internal"}
    assert await opened(monitored) == ["a.internal"]
    await editor.copy_records_to_table(
        "services",
        schema_name="hybrid_monitors",
        columns=["name", "url"],
        records=[("b", "http://b/"), ("c", "http://c/"), ("d", "http://b/other")],
    )
    assert await signalled(monitored) == {"monitors:b", "monitors:c"}
    await editor.execute("UPDATE hybrid_monitors.services SET url = 'http://e/' WHERE name = 'c'")
    assert await signalled(monitored) == {"monitors:c", "monitors:e"}
    await editor.execute("UPDATE hybrid_monitors.services SET active = false WHERE name = 'a'")
    assert await signalled(monitored) == {"monitors:a.internal"}
    await editor.execute("DELETE FROM hybrid_monitors.services WHERE name = 'b'")
    assert await signalled(monitored) == {"monitors:b"}
    await editor.execute(
        "INSERT INTO hybrid_monitors.services (name, url) VALUES ('d', 'http://f/'),"
        " ('g', 'http://g/') ON CONFLICT (name) DO UPDATE SET url = excluded.url"
    )
    assert await signalled(monitored) == {"monitors:b", "monitors:f", "monitors:g"}


async def test_a_merge_is_heard(monitored: Connection, editor: Connection) -> None:
    if monitored.get_server_version().major < 15:
        pytest.skip("SKIPPED: MERGE came with PostgreSQL 15")
    await add(monitored, "a", "http://a/")
    await signalled(monitored)
    await editor.execute(
        "MERGE INTO hybrid_monitors.services AS s USING (VALUES ('a', 'http://c/'), ('b',"
        " 'http://b/')) AS n (name, url) ON s.name = n.name WHEN MATCHED THEN UPDATE SET url ="
        " n.url WHEN NOT MATCHED THEN INSERT (name, url) VALUES (n.name, n.url)"
    )
    assert await signalled(monitored) == {"monitors:a", "monitors:b", "monitors:c"}


async def test_a_truncate_stops_what_was_polled(monitored: Connection) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await signalled(monitored)
    await monitored.execute("TRUNCATE hybrid_monitors.services")
    assert await signalled(monitored) == {"monitors:a.internal"}
    assert [each.is_deleted for each in (await played.take()).stopped] == [True]


async def test_what_changes_nothing_wakes_nobody(monitored: Connection, editor: Connection) -> None:
    """Applications that write all their services again and again are many."""
    await add(monitored, "a")
    await editor.execute(
        "INSERT INTO hybrid_monitors.services (name, url, active) VALUES ('b', 'http://b/', false)"
    )
    await signalled(monitored)
    await editor.execute("UPDATE hybrid_monitors.services SET name = name, every = '30 s'")
    await editor.execute(
        "UPDATE hybrid_monitors.services SET labels = '{\"a\": 1}' WHERE name = 'b'"
    )
    await editor.execute("DELETE FROM hybrid_monitors.services WHERE name = 'b'")
    assert await signalled(monitored) == set()


async def test_a_service_that_comes_paused_has_no_host_opened(monitored: Connection) -> None:
    """Its new host has a job already, and nothing more to do."""
    await add(monitored, "a")
    await play(monitored)
    await add(monitored, "b", "http://b/")
    await play(monitored, "b")
    await monitored.execute("DELETE FROM hybrid_runner.jobs WHERE kind = 'monitors.open'")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET url = 'http://b/', active = false WHERE name = 'a'"
    )
    assert await opened(monitored) == []


async def test_ten_thousand_services_in_one_statement_are_one_job_and_signal_for_each_host(
    monitored: Connection, editor: Connection
) -> None:
    await editor.execute(
        "INSERT INTO hybrid_monitors.services (name, url) SELECT 's' || n,"
        " 'http://h' || n % 50 || '/' || n FROM generate_series(1, 10000) AS n"
    )
    assert len(await monitored.fetch(SIGNALS)) == 50
    assert len(await monitored.fetch(OPENED)) == 1
    assert await monitor_calls.open_hosts(monitored, await opened(monitored)) == 50
    assert await monitor_calls.open_hosts(monitored) == 0


async def test_a_job_opens_five_hundred_hosts_at_most(monitored: Connection) -> None:
    """So that its payload is bounded, and its transaction is short."""
    await monitored.execute(ADD_MANY, 501, 501)
    sizes = [len(json.loads(row[0])["hosts"]) for row in await monitored.fetch(OPENED)]
    assert sorted(sizes) == [1, 500]


@pytest.mark.parametrize("statement", ["DELETE FROM", "TRUNCATE"])
async def test_many_services_that_are_gone_are_one_signal_for_each_host(
    monitored: Connection, statement: str
) -> None:
    await monitored.execute(ADD_MANY, 100, 2)
    for host in ("h0.internal", "h1.internal"):
        await (await play(monitored, host)).poll()
    await monitored.execute(FORGET)
    await monitored.execute(f"{statement} hybrid_monitors.services")
    keys = [row[0] for row in await monitored.fetch(SIGNALS)]
    assert sorted(keys) == ["monitors:h0.internal", "monitors:h1.internal"]


async def test_a_host_with_a_job_gets_no_other(monitored: Connection) -> None:
    await add(monitored, "a")
    await play(monitored)
    await monitored.execute("DELETE FROM hybrid_runner.jobs WHERE kind = 'monitors.open'")
    await monitored.execute("UPDATE hybrid_monitors.services SET labels = '{\"team\": 1}'")
    await monitor_calls.ask_poll(monitored, "a")
    assert await opened(monitored) == []
    await add(monitored, "b")
    assert await opened(monitored) == ["a.internal"]
    assert await monitor_calls.open_hosts(monitored, ["a.internal", "elsewhere"]) == 0


async def test_all_hosts_that_have_something_to_do_get_their_jobs_again(
    monitored: Connection,
) -> None:
    """Somebody has deleted them; a host whose services are gone has to tell so."""
    for name in "abc":
        await add(monitored, name, f"http://{name}/")
    await (await play(monitored, "a")).poll()
    await monitored.execute("DELETE FROM hybrid_runner.jobs")
    await monitored.execute("DELETE FROM hybrid_monitors.services WHERE name <> 'b'")
    assert await monitor_calls.open_hosts(monitored) == 2
    keys = await monitored.fetch("SELECT key FROM hybrid_runner.jobs WHERE key IS NOT NULL")
    assert {row[0] for row in keys} == {"monitors:a", "monitors:b"}


async def test_an_open_transaction_of_an_editor_holds_up_no_other_and_no_reconciler(
    monitored: Connection, editor: Connection, monitors_dsn: str
) -> None:
    """Two new services of one new host."""
    other = await connect(monitors_dsn)
    await other.execute("SET ROLE hybrid_monitors_editor")
    transaction = editor.transaction()
    await transaction.start()
    await editor.execute(ADD, "a", "http://new/")
    for connection in (other, monitored):
        await connection.execute("SET lock_timeout = '1ms'")
    await other.execute(ADD, "b", "http://new/")
    assert await monitor_calls.open_hosts(monitored) == 1
    assert [each.name for each in (await (await play(monitored, "new")).take()).services] == ["b"]
    await transaction.commit()
    names = (await (await play(monitored, "new")).take()).services
    assert {each.name for each in names} == {"a", "b"}
    await other.close()


async def test_a_key_in_an_open_transaction_of_a_producer_holds_up_that_host_alone(
    monitored: Connection, monitors_dsn: str
) -> None:
    producer = await connect(monitors_dsn)
    transaction = producer.transaction()
    await transaction.start()
    await producer.execute("INSERT INTO hybrid_runner.jobs (kind, key) VALUES ('x', 'monitors:b')")
    for name in "abc":
        await add(monitored, name, f"http://{name}/")
    assert await monitor_calls.open_hosts(monitored) == 2
    await transaction.rollback()
    assert await monitor_calls.open_hosts(monitored) == 1
    await producer.close()


async def test_an_id_stays_what_it_is(monitored: Connection, editor: Connection) -> None:
    number = await add(monitored, "a")
    for statement, why in (
        ("UPDATE hybrid_monitors.services SET id = DEFAULT", "permission denied"),
        (
            (
                "INSERT INTO hybrid_monitors.services (id, name, url) OVERRIDING SYSTEM VALUE"
                " VALUES (99, 'b', 'http://b')"
            ),
            "permission denied",
        ),
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match=why):
            await editor.execute(statement)
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await monitored.execute("UPDATE hybrid_monitors.services SET id = DEFAULT")
    assert str(raised.value) == (
        f"services.id must stay what it is, which is {number}: add another service instead"
    )
    with pytest.raises(asyncpg.CheckViolationError, match=r"services\.id must be given by"):
        await monitored.execute(
            "INSERT INTO hybrid_monitors.services (id, name, url) OVERRIDING SYSTEM VALUE"
            " VALUES (9223372036854775807, 'b', 'http://b')"
        )


SHADOWS = """
CREATE TYPE pg_temp.interval AS ENUM ('x');
CREATE FUNCTION pg_temp.octet_length(text) RETURNS integer LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'became %', current_user; END $$;
CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'became %', current_user; END $$;
CREATE TEMP TABLE services (id bigint);
CREATE TEMP TABLE inserted (host text, active boolean);
SET search_path = pg_temp, pg_catalog
"""


async def test_what_an_editor_puts_before_names_of_ours_is_not_found(
    monitored: Connection, editor: Connection
) -> None:
    await editor.execute(SHADOWS)
    await editor.execute(ADD, "a", "http://A/")
    assert await signalled(monitored) == {"monitors:a"}
    await editor.fetchval("SELECT hybrid_monitors.ask_poll('a')")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://ORDERS.Internal:8080/x?y#z", "orders.internal"),
        ("HTTPS://[::FFFF:1]:443/", "[::ffff:1]"),
        ("http://\u0130stanbul/", "\u0130stanbul"),  # as it is in any collation
        ("http://a?b", "a"),
        ("http://a#b", "a"),
        ("http://a/@b:c", "a"),
    ],
)
async def test_a_host_is_in_lower_case_and_without_its_port(
    undone: Connection, url: str, host: str
) -> None:
    await undone.execute(ADD, "a", url)
    assert await undone.fetchval("SELECT host FROM hybrid_monitors.services") == host


async def test_an_editor_has_these_rights_and_no_others(
    monitored: Connection, editor: Connection
) -> None:
    await add(monitored, "a")
    for table in (
        *("services", "standings", "dependencies", "events", "windows", "aliases", "errors"),
        *("hours", "hosts", "asked", "latency_history", "maintained", "overview"),
    ):
        await editor.fetch(f"SELECT FROM hybrid_monitors.{table}")
    await editor.execute("INSERT INTO hybrid_monitors.aliases VALUES ('pg', 'PostgreSQL')")
    await editor.execute(
        "INSERT INTO hybrid_monitors.windows (service_id, begins, ends) VALUES"
        " (1, now(), now() + interval '1 h')"
    )
    await editor.fetchval("SELECT hybrid_monitors.ask_poll('a')")
    for statement in (
        "TRUNCATE hybrid_monitors.services",
        "UPDATE hybrid_monitors.standings SET is_down = true",
        "DELETE FROM hybrid_monitors.events",
        "INSERT INTO hybrid_monitors.asked (service_id) VALUES (1)",
        "SELECT hybrid_monitors.open_hosts()",
        "SELECT hybrid_monitors.services_changed('{a}')",
        "SELECT hybrid_monitors.take_round('a', 1, 1, 1, '{}', '{}', '{}')",
        "SELECT setval('hybrid_monitors.event_readers_until', 1)",
        "SELECT 1 FROM hybrid_runner.jobs",
        "INSERT INTO hybrid_runner.jobs (kind) VALUES ('x')",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await editor.execute(statement)


async def test_a_worker_plays_rounds_and_does_upkeep_and_changes_no_service(
    monitored: Connection, monitors_dsn: str
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    worker = await connect(monitors_dsn)
    await worker.execute("SET ROLE hybrid_runner_worker")
    await type(played)(worker, played.host, played.job_id, played.claim).poll()
    await monitor_calls.upkeep(worker)
    await monitor_calls.ask_poll(worker, "a")
    await monitor_calls.answer_of_poll(worker, 1)
    await worker.execute("SELECT setval('hybrid_monitors.event_readers_until', 1)")
    for statement in (
        "UPDATE hybrid_monitors.services SET active = false",
        "DELETE FROM hybrid_monitors.standings",
        "SELECT hybrid_monitors.store_rounds('{a}')",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await worker.execute(statement)
    await worker.close()


async def test_nobody_else_may_do_anything(monitored: Connection) -> None:
    rows = await monitored.fetch(
        "SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace ="
        " 'hybrid_monitors'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')"
    )
    assert [row[0] for row in rows] == []
    rows = await monitored.fetch(
        "SELECT p.proname::text FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a"
        " WHERE p.pronamespace = 'hybrid_monitors'::regnamespace AND a.grantee <> p.proowner"
        " AND (p.prorettype = 'trigger'::regtype OR p.proname LIKE 'store%')"
    )
    assert [row[0] for row in rows] == []
