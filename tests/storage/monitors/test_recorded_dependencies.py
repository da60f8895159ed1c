"""What polls change of dependencies, of their errors and of their latencies."""

from __future__ import annotations

from dataclasses import replace

from hybrid_runner.model.monitors import (
    DependencyAfter,
    ErrorEntry,
    Item,
    Latency,
)
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored import dependency, one, stored


async def test_dependencies_are_upserted_by_service_and_name_under_their_canonical_names(
    monitored: Connection,
) -> None:
    """C8, C9"""
    await monitored.execute("INSERT INTO hybrid_monitors.aliases VALUES ('pg', 'PostgreSQL')")
    played, service, decision = await one(monitored)
    item = Item(
        "pg",
        healthy=True,
        type="database",
        description="d",
        impact="i",
        state=1,
        code=201,
        latency_ms=3,
        contact={"team": "x"},
        check_details={"a": [1]},
        error={"b": 1, "a": 2},
        error_message="m",
        last_checked=decision.after.due_at,
    )
    recorded = await played.record([replace(decision, dependencies=(stored(item, service.id),))])
    assert recorded.status_changes == 0
    before = await dependency(monitored, service.id, "pg")
    assert (before.item, before.last_status_change) == (item, None)
    ill = replace(item, healthy=False, contact=None)
    again = replace(decision, dependencies=(stored(ill, service.id, status_changed=True),))
    assert (await played.record([again])).status_changes == 1
    after = await dependency(monitored, service.id, "pg")
    assert (after.id, after.item) == (before.id, ill)
    assert after.last_status_change is not None
    assert await monitored.fetchval("SELECT canonical_name FROM hybrid_monitors.dependencies") == (
        "PostgreSQL"
    )


async def test_whatever_an_answer_says_anew_takes_the_place_of_what_was_stored(
    monitored: Connection,
) -> None:
    """C8"""
    played, service, decision = await one(monitored)
    await played.record(
        [replace(decision, dependencies=(stored(Item("db", healthy=True), service.id),))]
    )
    other = Item(
        "db",
        healthy=False,
        type="database",
        description="d",
        impact="i",
        state=2,
        code=503,
        latency_ms=9,
        skipped=True,
        contact={"team": "x"},
        check_details={"a": 1},
        error={"code": 7},
        error_message="m",
        last_checked=decision.after.due_at,
    )
    after = DependencyAfter(service.id, other, 2, False, 1, False)
    await played.record([replace(decision, dependencies=(after,))])
    found = await dependency(monitored, service.id, "db")
    assert found.item == other
    assert (found.contrary, found.told, found.missing) == (2, False, 1)


async def test_an_alias_holds_from_the_next_change_on(monitored: Connection) -> None:
    """C8: and not only when upkeep comes."""
    played, service, decision = await one(monitored)
    for code in (200, 201):
        found = (stored(Item("pg", healthy=True, code=code), service.id),)
        await played.record([replace(decision, dependencies=found)])
        await monitored.execute(
            "INSERT INTO hybrid_monitors.aliases VALUES ('pg', 'PostgreSQL') ON CONFLICT DO NOTHING"
        )
    assert await monitored.fetchval("SELECT canonical_name FROM hybrid_monitors.dependencies") == (
        "PostgreSQL"
    )


async def test_when_its_health_changed_stays_until_it_changes_again(monitored: Connection) -> None:
    """C9"""
    played, service, decision = await one(monitored)
    times = []
    for code, has_changed in ((200, False), (201, True), (202, False), (203, True)):
        item = Item("db", healthy=True, code=code)
        found = (stored(item, service.id, status_changed=has_changed),)
        await played.record([replace(decision, dependencies=found)])
        times.append((await dependency(monitored, service.id, "db")).last_status_change)
    never, first, same, second = times
    assert (never, first) == (None, same)
    assert first is not None
    assert second is not None
    assert second > first


async def test_one_name_twice_in_an_answer_is_stored_once(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
    twice = (
        stored(Item("db", healthy=True), service.id),
        stored(Item("db", healthy=False), service.id),
    )
    await played.record([replace(decision, dependencies=twice)])
    assert (await dependency(monitored, service.id, "db")).item.healthy


async def test_errors_are_histories_of_dependencies_and_of_polls(monitored: Connection) -> None:
    """C10"""
    played, service, decision = await one(monitored)
    await played.record(
        [
            replace(
                decision,
                dependencies=(stored(Item("db", healthy=False), service.id),),
                errors=(
                    ErrorEntry(service.id, "db", {"code": 7}, "no disk"),
                    ErrorEntry(service.id, None, "HTTP 500", "HTTP 500"),
                ),
            )
        ]
    )
    known = await dependency(monitored, service.id, "db")
    assert known.last_error == {"code": 7}
    rows = await monitored.fetch(
        "SELECT dependency_id, error::text, message FROM hybrid_monitors.errors"
    )
    assert set(map(tuple, rows)) == {
        (known.id, '{"code": 7}', "no disk"),
        (None, '"HTTP 500"', "HTTP 500"),
    }
    await played.record([replace(decision, errors=(ErrorEntry(service.id, "db", None, None),))])
    assert (await dependency(monitored, service.id, "db")).last_error is None


async def test_latencies_above_zero_are_one_row_for_a_round(monitored: Connection) -> None:
    """C11"""
    played, service, decision = await one(monitored)
    items = tuple(stored(Item(name, healthy=True), service.id) for name in ("a", "b", "c"))
    said = (
        Latency(service.id, "c", 2**40),
        Latency(service.id, "a", 3),
        Latency(service.id, "b", 0),
    )
    await played.record([replace(decision, dependencies=items, latencies=said)])
    ids = {name: (await dependency(monitored, service.id, name)).id for name in ("a", "c")}
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.latencies") == 1
    rows = await monitored.fetch("SELECT dependency_id, ms FROM hybrid_monitors.latency_history")
    assert {tuple(row) for row in rows} == {(ids["a"], 3), (ids["c"], 2**31 - 1)}


async def test_a_dependency_that_is_gone_is_forgotten(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
    items = tuple(stored(Item(name, healthy=True), service.id) for name in ("a", "b"))
    await played.record([replace(decision, dependencies=items)])
    await played.record([replace(decision, gone=("a",))])
    assert list((await monitor_calls.dependencies_of(monitored, [service.id]))[service.id]) == ["b"]
