"""What upkeep removes, renames and forgets beside partitions."""

from __future__ import annotations

from dataclasses import replace

from hybrid_runner.model.monitors import Item
from hybrid_runner.storage import monitor_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import add, good, play, stored


async def test_what_is_left_of_services_that_are_gone_is_removed(monitored: Connection) -> None:
    parent, child = await add(monitored, "parent"), await add(monitored, "child")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET depends_on = $1 WHERE id = $2", parent, child
    )
    played = await play(monitored)
    taken = await played.take()
    await played.record(
        [
            replace(
                good(each, taken.now), dependencies=(stored(Item("db", healthy=True), each.id),)
            )
            for each in taken.services
        ]
    )
    await monitored.execute(
        "INSERT INTO hybrid_monitors.windows (service_id, begins, ends) VALUES ($1, now(), now() +"
        " interval '1 h'), ($2, now(), now() + interval '1 h')",
        parent,
        child,
    )
    await monitored.execute("INSERT INTO hybrid_monitors.asked (service_id) VALUES ($1)", parent)
    assert (await monitor_calls.upkeep(monitored)).leftovers == 0
    await service_calls.remove_service(monitored, "parent")
    await monitored.execute("DELETE FROM hybrid_monitors.standings WHERE service_id = $1", parent)
    assert (await monitor_calls.upkeep(monitored)).leftovers == 4
    assert (await monitor_calls.upkeep(monitored)).leftovers == 0
    rows = await monitored.fetch(
        "SELECT d.service_id, s.depends_on FROM hybrid_monitors.dependencies AS d JOIN"
        " hybrid_monitors.services AS s ON s.id = d.service_id"
    )
    assert [tuple(row) for row in rows] == [(child, None)]


async def test_what_is_over_is_removed_and_what_may_count_again_is_kept(
    monitored: Connection,
) -> None:
    """Hosts that nobody polls any more, and windows that will not open again."""
    await add(monitored, "a")
    await (await play(monitored)).poll()
    await add(monitored, "b", "http://stops.internal/")
    await (await play(monitored, "stops.internal")).poll()
    await service_calls.pause_service(monitored, "b")
    await monitored.execute(
        "INSERT INTO hybrid_monitors.hosts (host, looked_at) VALUES ('new.internal', now() -"
        " interval '23 hours'),"
        " ('old.internal', now()), ('waits.internal', now())"
    )
    await add(monitored, "c", "http://waits.internal/")
    await monitored.execute(
        "UPDATE hybrid_monitors.hosts SET looked_at = now() - interval '25 hours'"
        " WHERE host <> 'new.internal'"
    )
    await monitored.execute(
        "INSERT INTO hybrid_monitors.windows (label, begins, ends, every, reason) VALUES"
        " ('{}', now() - interval '32 days', now() - interval '31 days', NULL, 'over'),"
        " ('{}', now() - interval '30 days', now() - interval '29 days', NULL, 'just over'),"
        " ('{}', now() - interval '32 days', now() - interval '31 days', '2 days', 'again')"
    )
    assert (await monitor_calls.upkeep(monitored)).leftovers == 2
    hosts = await monitored.fetchval(
        "SELECT array_agg(host ORDER BY host) FROM hybrid_monitors.hosts"
    )
    assert hosts == ["a.internal", "new.internal", "stops.internal", "waits.internal"]
    left = "SELECT array_agg(reason ORDER BY reason) FROM hybrid_monitors.windows"
    assert await monitored.fetchval(left) == ["again", "just over"]


async def test_a_poll_that_was_asked_for_of_a_service_that_is_paused_is_forgotten(
    monitored: Connection,
) -> None:
    for name in "ab":
        await add(monitored, name)
        await monitor_calls.ask_poll(monitored, name)
    await service_calls.pause_service(monitored, "a")
    assert (await monitor_calls.upkeep(monitored)).leftovers == 1
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.asked") == 1


async def test_what_is_known_of_a_deleted_service_stays_until_its_stop_is_told(
    monitored: Connection,
) -> None:
    service_id = await add(monitored, "a")
    played = await play(monitored)
    taken = await played.take()
    item = stored(Item("db", healthy=True), service_id)
    await played.record([replace(good(taken.services[0], taken.now), dependencies=(item,))])
    await service_calls.remove_service(monitored, "a")
    assert (await monitor_calls.upkeep(monitored)).leftovers == 0
    await played.poll()
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.dependencies") == 0


async def test_upkeep_waits_for_no_editor(monitored: Connection, monitors_dsn: str) -> None:
    parent, child = await add(monitored, "parent"), await add(monitored, "child")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET depends_on = $1 WHERE id = $2", parent, child
    )
    await service_calls.remove_service(monitored, "parent")
    editor = await connect(monitors_dsn)
    async with editor.transaction():
        await editor.execute("UPDATE hybrid_monitors.services SET labels = '{\"a\": 1}'")
        await monitored.execute("SET statement_timeout = '50s'")
        assert (await monitor_calls.upkeep(monitored)).leftovers == 0
    assert (await monitor_calls.upkeep(monitored)).leftovers == 1
    await editor.close()


async def test_an_alias_reaches_dependencies_that_are_stored_already(
    monitored: Connection,
) -> None:
    """C8"""
    service_id = await add(monitored, "a")
    played = await play(monitored)
    taken = await played.take()
    item = stored(Item("pg", healthy=True), service_id)
    await played.record([replace(good(taken.services[0], taken.now), dependencies=(item,))])
    canonical = "SELECT canonical_name FROM hybrid_monitors.dependencies"
    for change, renamed, name in (
        ("INSERT INTO hybrid_monitors.aliases VALUES ('pg', 'PostgreSQL')", 1, "PostgreSQL"),
        ("DELETE FROM hybrid_monitors.aliases", 1, "pg"),
        ("DELETE FROM hybrid_monitors.aliases", 0, "pg"),
    ):
        await monitored.execute(change)
        assert (await monitor_calls.upkeep(monitored)).renamed == renamed
        assert await monitored.fetchval(canonical) == name


async def test_when_upkeep_ended_is_written_down(monitored: Connection) -> None:
    ended = "SELECT ended_at FROM hybrid_monitors.upkeep_runs"
    assert await monitored.fetchval(ended) is None
    await monitor_calls.upkeep(monitored)
    assert await monitored.fetchval(ended) is not None


async def test_signals_that_rounds_were_given_are_forgotten_after_an_hour(
    monitored: Connection,
) -> None:
    await monitored.execute(
        "INSERT INTO hybrid_runner.signals (key) VALUES ('monitors:a'), ('monitors:b'), ('mine')"
    )
    await monitored.execute(
        "INSERT INTO hybrid_runner.waits (job_id, key, signal_id) SELECT 1, key, id"
        " FROM hybrid_runner.signals WHERE key <> 'monitors:b'"
    )
    await monitor_calls.upkeep(monitored)
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_runner.signals") == 3
    await monitored.execute("UPDATE hybrid_runner.signals SET sent_at = now() - interval '2 h'")
    await monitor_calls.upkeep(monitored)
    keys = await monitored.fetchval("SELECT array_agg(key ORDER BY key) FROM hybrid_runner.signals")
    assert keys == ["mine", "monitors:b"]


LEFTOVERS = """
INSERT INTO hybrid_monitors.dependencies (service_id, name, canonical_name, healthy, last_checked)
SELECT 90 + n, 'db', 'db', true, now() FROM generate_series(1, 2) AS n;
INSERT INTO hybrid_monitors.asked (service_id) VALUES (91), (92);
INSERT INTO hybrid_monitors.hosts (host, looked_at)
SELECT 'h' || n, now() - interval '25 hours' FROM generate_series(1, 2) AS n;
INSERT INTO hybrid_monitors.windows (label, begins, ends)
SELECT '{}', now() - interval '40 days', now() - interval '31 days' FROM generate_series(1, 2);
INSERT INTO hybrid_runner.signals (key) VALUES ('monitors:h1'), ('monitors:h2');
UPDATE hybrid_runner.signals SET sent_at = now() - interval '2 hours';
INSERT INTO hybrid_runner.waits (job_id, key, signal_id)
SELECT 1, key, id FROM hybrid_runner.signals WHERE key IN ('monitors:h1', 'monitors:h2');
ALTER TABLE hybrid_monitors.services DISABLE TRIGGER check_service;
INSERT INTO hybrid_monitors.services (name, url, format, depends_on)
SELECT 's' || n, 'http://a/', 'status', 99 FROM generate_series(1, 2) AS n;
ALTER TABLE hybrid_monitors.services ENABLE TRIGGER check_service;
INSERT INTO hybrid_monitors.events
SELECT n, now() - interval '31 days', 'x', 1, '{}' FROM generate_series(1, 2) AS n;
"""


async def test_of_each_table_no_more_is_removed_at_a_time_than_is_said(
    monitored: Connection,
) -> None:
    """Whatever has piled up, no statement of upkeep is a long one."""
    await monitored.execute(LEFTOVERS)
    forget = "SELECT hybrid_monitors.forget_leftovers(1)"
    assert [await monitored.fetchval(forget) for _ in range(3)] == [7, 7, 0]


async def test_no_more_dependencies_are_renamed_at_a_time_than_is_said(
    monitored: Connection,
) -> None:
    await monitored.execute(LEFTOVERS)
    await monitored.execute("INSERT INTO hybrid_monitors.aliases VALUES ('db', 'PostgreSQL')")
    rename = "SELECT hybrid_monitors.rename_dependencies(1)"
    assert [await monitored.fetchval(rename) for _ in range(3)] == [1, 1, 0]


async def test_a_dependency_that_a_round_holds_is_renamed_another_time(
    monitored: Connection, monitors_dsn: str
) -> None:
    """C8: upkeep waits for no round, and holds none up."""
    await monitored.execute(LEFTOVERS)
    await monitored.execute("INSERT INTO hybrid_monitors.aliases VALUES ('db', 'PostgreSQL')")
    rename = "SELECT hybrid_monitors.rename_dependencies()"
    await monitored.execute("SET statement_timeout = '50s'")
    held = await connect(monitors_dsn)
    async with held.transaction():
        await held.execute(
            "SELECT FROM hybrid_monitors.dependencies WHERE service_id = 91 FOR UPDATE"
        )
        assert await monitored.fetchval(rename) == 1
    assert await monitored.fetchval(rename) == 1
    await held.close()
