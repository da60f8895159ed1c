from __future__ import annotations

import asyncio
import json
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
    Service,
    Standing,
    Subscription,
)
from hybrid_runner.storage import monitor_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import PlayedRound, add, dependency, good, play, stored

EVENTS = (
    "SELECT id, kind, service_id, payload::text, suppressed FROM hybrid_monitors.events ORDER BY id"
)
PAGER = Subscription("status:change", "monitors.on:status:change:page", "monitors-events", 7)


async def one(on: Connection, name: str = "orders") -> tuple[PlayedRound, Service, Decision]:
    """A round with one service, and what a good poll of it decides."""
    await add(on, name)
    played = await play(on)
    taken = await played.take()
    [service] = taken.services
    return played, service, good(service, taken.now)


async def test_what_is_decided_is_what_the_next_round_is_given(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
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


async def test_events_are_numbered_without_gaps_and_become_jobs_of_those_who_subscribed(
    monitored: Connection,
) -> None:
    """C13"""
    played, service, decision = await one(monitored)
    events = (
        Event("service:started", service.id, {"serviceId": service.id}),
        Event("status:change", service.id, {"dependencyName": "db"}),
        Event("status:change", service.id, {"dependencyName": "mq"}, "maintenance"),
    )
    recorded = await played.record([replace(decision, events=events)], subscriptions=[PAGER])
    assert recorded.event_ids == (1, 2, 3)
    recorded = await played.record([replace(decision, events=events[:1])])
    assert recorded.event_ids == (4,)
    rows = await monitored.fetch(EVENTS)
    assert [(row["id"], row["kind"], row["suppressed"]) for row in rows] == [
        (1, "service:started", None),
        (2, "status:change", None),
        (3, "status:change", "maintenance"),
        (4, "service:started", None),
    ]
    jobs = await monitored.fetch(
        "SELECT queue, max_attempts, payload::text FROM hybrid_runner.jobs WHERE kind = $1",
        PAGER.job_kind,
    )
    [(queue, attempts, payload)] = jobs
    assert (queue, attempts) == ("monitors-events", 7)
    told = json.loads(payload)
    assert (told["id"], told["kind"], told["dependencyName"]) == (2, "status:change", "db")
    assert "at" in told


async def test_good_polls_are_events_only_where_somebody_wants_them(monitored: Connection) -> None:
    played, service, decision = await one(monitored)
    polled = replace(
        decision,
        events=(
            Event("poll:complete", service.id, {"success": True}),
            Event("poll:complete", service.id, {"success": False}),
        ),
    )
    wants = Subscription("poll:complete", "monitors.on:poll:complete:f", "monitors-events")
    assert len((await played.record([polled])).event_ids) == 1
    assert len((await played.record([polled], keeps_polls=True)).event_ids) == 2
    assert len((await played.record([polled], subscriptions=[wants])).event_ids) == 2


async def test_while_somebody_reads_events_a_round_is_told(monitored: Connection) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    assert not (await played.take()).polls_are_read
    lamp = (
        "SELECT setval('hybrid_monitors.event_readers_until', greatest(0, (extract(epoch FROM"
        " clock_timestamp()) * 1000)::bigint + $1::bigint))"
    )
    for milliseconds, is_read in ((20_000, True), (-1, False), (70_000, False)):
        await monitored.execute(lamp, milliseconds)
        assert (await played.take()).polls_are_read is is_read


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
    await played.poll()
    await service_calls.pause_service(monitored, "a")
    stopped = (await played.take()).stopped
    await service_calls.resume_service(monitored, "a")
    recorded = await played.record(
        [], [(each, [Event("service:stopped", paused, {})]) for each in stopped]
    )
    assert recorded.event_ids == ()
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.standings") == 1


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


async def test_ids_of_events_are_in_the_order_of_commits(
    monitored: Connection, monitors_dsn: str
) -> None:
    """Whoever reads the table on from the last id misses none: a round waits for the numbers of
    another that has not committed.
    """
    await add(monitored, "a")
    other_id = await add(monitored, "b", "http://b.internal/")
    played = await play(monitored)
    other = await connect(monitors_dsn)
    there = replace(await play(monitored, "b.internal"), on=other)
    taken, taken_there = await played.take(), await there.take()
    event = Event("service:started", other_id, {})
    first = monitored.transaction()
    await first.start()
    await played.record(
        [replace(good(taken.services[0], taken.now), events=(Event("service:started", 1, {}),))]
    )
    second = asyncio.create_task(
        there.record([replace(good(taken_there.services[0], taken_there.now), events=(event,))])
    )
    await asyncio.wait([second], timeout=0.2)
    assert not second.done()
    await first.rollback()
    assert (await second).event_ids == (1,)
    await other.close()


async def test_rounds_of_many_hosts_at_once_number_their_events_densely(
    monitored: Connection, monitors_dsn: str
) -> None:
    connections = [await connect(monitors_dsn) for _ in range(4)]
    rounds = []
    for number, connection in enumerate(connections):
        await add(monitored, f"s{number}", f"http://h{number}.internal/")
        rounds.append(replace(await play(monitored, f"h{number}.internal"), on=connection))

    async def run(played: PlayedRound) -> list[int]:
        taken = await played.take()
        [service] = taken.services
        event = Event("service:started", service.id, {})
        decision = replace(good(service, taken.now), events=(event, event))
        return [n for _ in range(25) for n in (await played.record([decision])).event_ids]

    numbers = await asyncio.gather(*map(run, rounds))
    assert sorted(n for some in numbers for n in some) == list(range(1, 201))
    assert all(some == sorted(some) for some in numbers)
    for connection in connections:
        await connection.close()


async def test_an_asked_poll_is_answered_by_what_is_recorded(monitored: Connection) -> None:
    asked = await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    assert await monitor_calls.ask_poll(monitored, "a") == asked
    assert (await monitor_calls.answer_of_poll(monitored, asked)).is_pending
    taken = await played.take()
    put_off = replace(good(taken.services[0], taken.now), polled=None)
    await played.record([put_off], last=False)
    assert (await monitor_calls.answer_of_poll(monitored, asked)).is_pending
    await played.record([good(taken.services[0], taken.now)])
    answer = await monitor_calls.answer_of_poll(monitored, asked)
    assert not answer.is_pending
    assert answer.standing is not None
    assert answer.standing.ok


async def test_a_poll_is_refused_while_one_is_asked_for_or_on_its_way(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    await add(monitored, "b")
    await service_calls.pause_service(monitored, "b")
    played = await play(monitored)

    async def refusal(name: str) -> str:
        with pytest.raises(Exception, match=r".") as raised:
            await monitor_calls.ask_poll(monitored, name)
        return str(raised.value)

    assert await refusal("c") == "there is no service called 'c'"
    assert await refusal("b") == "service 'b' is paused: resume it first"
    await monitor_calls.ask_poll(monitored, "a")
    assert await refusal("a") == "a poll of service 'a' is asked for already: wait for its answer"
    taken = await played.take()
    on_its_way = "a poll of service 'a' is on its way: wait for its answer"
    assert await refusal("a") == on_its_way
    await played.record([good(taken.services[0], taken.now)])
    await monitored.execute("UPDATE hybrid_monitors.standings SET due_at = now()")
    await played.take()
    assert await refusal("a") == on_its_way
    await play(monitored)  # the round was taken away from its worker
    await monitor_calls.ask_poll(monitored, "a")


async def test_a_probe_is_one_even_if_its_round_dies(monitored: Connection) -> None:
    """C2"""
    played, service, decision = await one(monitored)
    due_at = decision.after.due_at - service.every
    open_ = replace(decision.after, breaker="open", due_at=due_at, failures=10)
    await played.record([replace(decision, after=open_)])
    taken = await played.take()
    until = taken.now + timedelta(minutes=5)
    begun = await monitor_calls.begin_probes(
        monitored, played.job_id, played.claim, [service.id, 99], until
    )
    assert begun == {service.id}
    assert (await (await play(monitored)).take()).services == ()
    row = await monitored.fetchrow("SELECT breaker, due_at FROM hybrid_monitors.standings")
    assert tuple(row or ()) == ("half_open", until)


async def test_bad_news_are_suppressed_by_windows_by_quiet_and_by_parents_that_are_down(
    monitored: Connection,
) -> None:
    grandparent = await add(monitored, "grandparent", "http://b.internal/")
    parent = await add(monitored, "parent", "http://b.internal/")
    child = await add(monitored, "child")
    for number, above in ((child, parent), (parent, grandparent)):
        await monitored.execute(
            'UPDATE hybrid_monitors.services SET depends_on = $2, labels = \'{"team": "x"}\''
            " WHERE id = $1",
            number,
            above,
        )
    there = await play(monitored, "b.internal")
    taken = await there.take()
    await there.record(
        [good(each, taken.now, is_down=each.id == grandparent) for each in taken.services]
    )

    async def why() -> str | None:
        [service] = (await (await play(monitored)).take()).services
        return service.suppressed

    assert await why() == "parent"
    await monitored.execute("UPDATE hybrid_monitors.standings SET is_down = false")
    assert await why() is None
    window = (
        "INSERT INTO hybrid_monitors.windows (service_id, label, begins, ends, every) VALUES"
        " ($1, $2, now() + make_interval(hours => $3), now() + make_interval(hours => $4), $5)"
    )
    day = timedelta(days=1)
    for arguments, is_suppressed in (
        ((child, None, -1, 1, None), True),
        ((parent, None, -1, 1, None), False),
        ((child, None, -2, -1, None), False),
        ((child, None, 1, 2, None), False),
        ((None, '{"team": "x"}', -1, 1, None), True),
        ((None, '{"team": "y"}', -1, 1, None), False),
        ((None, "{}", -1, 1, None), True),
        ((child, None, -241, -239, day), True),
        ((child, None, -239, -237, day), False),
        ((child, None, 23, 25, day), False),
    ):
        async with monitored.transaction():
            await monitored.execute(window, *arguments)
        assert (await why() == "maintenance") is is_suppressed, arguments
        maintained = await monitored.fetch("SELECT service_id FROM hybrid_monitors.maintained")
        assert ((child,) in [tuple(row) for row in maintained]) is is_suppressed, arguments
        await monitored.execute("DELETE FROM hybrid_monitors.windows")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET quiet_until = now() + interval '1 h' WHERE id = $1",
        child,
    )
    assert await why() == "maintenance"


async def test_a_circle_of_parents_that_two_transactions_made_harms_nobody(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    await add(monitored, "b")
    await monitored.execute("ALTER TABLE hybrid_monitors.services DISABLE TRIGGER check_service")
    await monitored.execute("UPDATE hybrid_monitors.services SET depends_on = 3 - id")
    assert [each.suppressed for each in (await (await play(monitored)).take()).services] == [
        None
    ] * 2


async def test_the_next_run_comes_when_the_first_of_all_services_is_due(
    monitored: Connection,
) -> None:
    """Whether it was polled now or not."""
    for name, every in (("slow", 600), ("usual", 30), ("quick", 5)):
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
    assert timedelta(seconds=1) < due <= timedelta(seconds=5)
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
