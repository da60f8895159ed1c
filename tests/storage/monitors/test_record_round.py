"""What a round stores: all of it or nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.model.monitors import (
    Decision,
    ErrorEntry,
    Event,
    Item,
    Latency,
    Standing,
    Subscription,
)
from hybrid_runner.storage import monitor_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored import add, dependency, good, one, play, stored

EVENTS = (
    "SELECT id, kind, service_id, payload::text, suppressed FROM hybrid_monitors.events ORDER BY id"
)
PAGER = Subscription("status:change", "monitors.on:status:change:page", "monitors-events", 7)


@pytest.mark.parametrize("polls_before", [0, 1])
async def test_what_is_decided_is_what_the_next_round_is_given(
    monitored: Connection, polls_before: int
) -> None:
    played, service, decision = await one(monitored)
    for _ in range(polls_before):
        await played.record([decision])
    now = decision.after.due_at
    after = Standing(
        due_at=now - timedelta(minutes=1),
        url=service.url,
        polled_at=now,
        ok=False,
        latency_ms=2**40,
        failures=3,
        breaker="open",
        opened_at=now,
        is_down=True,
        recoveries=1,
        since=now,
        contrary_since=now,
        told_down=True,
        error="HTTP 500",
        failure="http",
        warnings=("one", "two"),
        certificate_ends_at=now,
        digest="abc",
        is_unsettled=True,
    )
    await played.record([replace(decision, after=after)])
    [service] = (await played.take()).services
    assert service.standing == replace(after, latency_ms=2**31 - 1)
    usual = replace(decision.after, due_at=after.due_at)
    await played.record([replace(decision, after=usual)])
    [service] = (await played.take()).services
    assert service.standing == usual


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE hybrid_monitors.services SET url = 'http://a.internal/other'",
        "UPDATE hybrid_monitors.services SET url = 'http://b.internal/'",
        "UPDATE hybrid_monitors.services SET active = false",
        "DELETE FROM hybrid_monitors.services",
        "TRUNCATE hybrid_monitors.services",
    ],
)
async def test_nothing_is_stored_of_a_poll_of_an_older_address_or_of_a_service_that_is_gone(
    monitored: Connection, change: str
) -> None:
    played, service, decision = await one(monitored)
    whole = replace(
        decision,
        dependencies=(stored(Item("db", healthy=True), service.id, status_changed=True),),
        errors=(ErrorEntry(service.id, None, 1, "one"),),
        latencies=(Latency(service.id, "db", 3),),
        events=(Event("status:change", service.id, {}),),
    )
    await monitored.execute(change)
    recorded = await played.record([whole], subscriptions=[PAGER])
    assert (recorded.event_ids, recorded.status_changes) == ((), 0)
    for table in ("standings", "dependencies", "errors", "latencies", "events"):
        assert await monitored.fetchval(f"SELECT count(*) FROM hybrid_monitors.{table}") == 0
    assert (
        await monitored.fetchval(
            "SELECT count(*) FROM hybrid_runner.jobs WHERE kind LIKE 'monitors.on%'"
        )
        == 0
    )


async def test_what_is_dropped_of_one_service_is_stored_of_the_others(
    monitored: Connection,
) -> None:
    """Section 7: the result of an older address is dropped, and nothing else."""
    ids = [await add(monitored, name) for name in "ab"]
    played = await play(monitored)
    taken = await played.take()

    def found(said: str, *names: str, gone: tuple[str, ...] = ()) -> list[Decision]:
        return [
            replace(
                good(each, taken.now),
                dependencies=tuple(
                    stored(Item(name, healthy=True, type=said), each.id) for name in names
                ),
                gone=gone,
                errors=(
                    ErrorEntry(each.id, None, said, said),
                    ErrorEntry(each.id, "db", said, said),
                ),
                latencies=(Latency(each.id, "db", 3),),
                events=(Event("service:up", each.id, {}),),
            )
            for each in taken.services
        ]

    await played.record(found("first", "db", "cache"), last=False)
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET url = url || 'new' WHERE name = 'a'"
    )
    await played.record(found("second", "db", gone=("cache",)))
    known = await monitor_calls.dependencies_of(monitored, ids)
    first, second = [
        {name: (one.item.type, one.last_error) for name, one in known[each].items()} for each in ids
    ]
    assert first == {"db": ("first", "first"), "cache": ("first", None)}
    assert second == {"db": ("second", "second")}
    for table, count in (("errors", 2), ("events", 1)):
        rows = await monitored.fetch(
            f"SELECT service_id, count(*) FROM hybrid_monitors.{table} GROUP BY 1 ORDER BY 1"
        )
        assert [tuple(row) for row in rows] == [(ids[0], count), (ids[1], 2 * count)]
    rows = await monitored.fetch("SELECT dependency_id FROM hybrid_monitors.latency_history")
    assert sorted(row[0] for row in rows) == sorted(
        known[each]["db"].id for each in (ids[0], ids[1], ids[1])
    )


async def test_the_round_of_one_host_says_nothing_of_services_of_another(
    monitored: Connection,
) -> None:
    """Whatever its worker believes: at most five ask a host, and one decides."""
    await add(monitored, "a")
    await add(monitored, "b", "http://b.internal/")
    here, there = await play(monitored), await play(monitored, "b.internal")
    taken = await there.take()
    await here.take()
    await here.record([good(each, taken.now) for each in taken.services])
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.standings") == 0


async def test_a_stop_is_told_once_whichever_round_is_first(monitored: Connection) -> None:
    moved = await add(monitored, "moved")
    here = await play(monitored)
    await here.poll()
    await service_calls.update_service(monitored, "moved", {"url": "http://b.internal/"})
    there = await play(monitored, "b.internal")
    stops = [(played, (await played.take()).stopped) for played in (here, there)]
    told = [
        await played.record([], [(each, [Event("service:stopped", moved, {})]) for each in stopped])
        for played, stopped in stops
    ]
    assert [len(each.event_ids) for each in told] == [1, 0]


async def test_a_service_that_is_resumed_before_its_stop_is_stored_goes_on(
    monitored: Connection,
) -> None:
    paused = await add(monitored, "a")
    played = await play(monitored)
    taken = await played.poll()
    await service_calls.pause_service(monitored, "a")
    stopped = (await played.take()).stopped
    await service_calls.resume_service(monitored, "a")
    recorded = await played.record(
        [good(each, taken.now) for each in taken.services],
        [(each, [Event("service:stopped", paused, {})]) for each in stopped],
    )
    assert recorded.event_ids == ()
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.standings") == 1


async def test_a_service_that_is_paused_keeps_its_dependencies(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
    found = (stored(Item("db", healthy=True), service.id),)
    await played.record([replace(decision, dependencies=found)])
    await service_calls.pause_service(monitored, "orders")
    stopped = (await played.take()).stopped
    await played.record([], [(each, ()) for each in stopped])
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.standings") == 0
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.dependencies") == 1


async def test_of_a_deleted_service_the_dependencies_go_and_the_events_stay(
    monitored: Connection,
) -> None:
    played, service, decision = await one(monitored)
    await played.record(
        [
            replace(
                decision,
                dependencies=(stored(Item("db", healthy=True), service.id),),
                events=(Event("service:started", service.id, {}),),
            )
        ]
    )
    await service_calls.remove_service(monitored, "orders")
    stopped = (await played.take()).stopped
    await played.record(
        [], [(each, [Event("service:stopped", each.service_id, {})]) for each in stopped]
    )
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.dependencies") == 0
    assert [row["kind"] for row in await monitored.fetch(EVENTS)] == [
        "service:started",
        "service:stopped",
    ]


ODD: list[Any] = [
    "\x00",
    "\ud800",
    2**70,
    10**400,
    [[[[[[]]]]]],
    {"\x00": "\x00", "a": {"\udfff": None}},
    float(2**60),
    "\\u0000",
    {1: 2},
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
async def test_whatever_a_service_says_a_round_is_stored(monitored: Connection, odd: Any) -> None:
    played, service, decision = await one(monitored)
    text = odd if isinstance(odd, str) else "\x00\ud800"
    item = Item(f"db{text}", healthy=False, error=odd, check_details={"a": odd}, error_message=text)
    recorded = await played.record(
        [
            replace(
                decision,
                after=replace(decision.after, error=text, warnings=(text,)),
                dependencies=(stored(item, service.id),),
                errors=(ErrorEntry(service.id, item.name, odd, text),),
                latencies=(Latency(service.id, item.name, 3),),
                events=(Event("poll:error", service.id, {"error": odd, "text": text}),),
            )
        ]
    )
    assert len(recorded.event_ids) == 1
    for table in ("dependencies", "errors", "latencies"):
        assert await monitored.fetchval(f"SELECT count(*) FROM hybrid_monitors.{table}") == 1


async def test_a_nest_without_end_is_cut(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    item = Item("db", healthy=False, error=deep)
    await played.record([replace(decision, dependencies=(stored(item, service.id),))])
    assert (await dependency(monitored, service.id, "db")).item.name == "db"


async def test_a_round_is_stored_whole_or_not_at_all(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
    wrong = replace(decision.after, breaker="ajar")  # type: ignore[arg-type]  # that is the point
    events = (Event("service:started", service.id, {}),)
    with pytest.raises(Exception, match="standings_breaker_is_known"):
        await played.record([replace(decision, after=wrong, events=events)])
    for table in ("standings", "events"):
        assert await monitored.fetchval(f"SELECT count(*) FROM hybrid_monitors.{table}") == 0
    assert (await played.record([replace(decision, events=events)])).event_ids == (1,)


async def test_the_next_run_comes_when_the_first_of_all_services_is_due(
    monitored: Connection,
) -> None:
    """Whether it was polled now or not."""
    for name, every in (("slow", 600), ("usual", 60), ("quick", 30)):
        await add(monitored, name)
        await service_calls.update_service(monitored, name, {"every": timedelta(seconds=every)})
    played = await play(monitored)
    taken = await played.take()
    by_name = {each.name: good(each, taken.now) for each in taken.services}
    assert (await played.record([by_name["slow"]], last=False)).next_due is None
    due = (await played.record([by_name["usual"]], last=False)).next_due
    assert due is None
    due = (await played.record([by_name["quick"]])).next_due
    assert due is not None
    assert timedelta(seconds=1) < due <= timedelta(seconds=30)
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET due_at = now() + interval '2 s' WHERE name = 'slow'"
    )
    due = (await played.take()).next_due
    assert due is not None
    assert due <= timedelta(seconds=2)
    due = (await played.record()).next_due
    assert due is not None
    assert due <= timedelta(seconds=2)


async def test_what_was_taken_and_not_recorded_is_due_at_once(monitored: Connection) -> None:
    for name in "ab":
        await add(monitored, name)
    played = await play(monitored)
    taken = await played.take()
    recorded = await played.record([good(taken.services[0], taken.now)])
    assert recorded.next_due == timedelta(0)
    assert [each.name for each in (await played.take()).services] == ["b"]


async def test_what_was_dropped_since_its_address_changed_is_due_at_once(
    monitored: Connection,
) -> None:
    played, _, decision = await one(monitored)
    await monitored.execute("UPDATE hybrid_monitors.services SET url = 'http://a.internal/b'")
    assert (await played.record([decision], last=False)).next_due is None
    assert len((await played.take()).services) == 1
    assert (await played.record([decision])).next_due == timedelta(0)
