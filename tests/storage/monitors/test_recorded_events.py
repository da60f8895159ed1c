"""What is told, to whom, and in which order."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from hybrid_runner.model.monitors import (
    Event,
    Subscription,
)
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import PlayedRound, add, good, one, play

EVENTS = (
    "SELECT id, kind, service_id, payload::text, suppressed FROM hybrid_monitors.events ORDER BY id"
)
PAGER = Subscription("status:change", "monitors.on:status:change:page", "monitors-events", 7)


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
