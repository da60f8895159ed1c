from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from hybrid_runner.model.monitors import Stopped
from hybrid_runner.storage import monitor_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import ADD_MANY, RUN, add, due, good, play


async def test_a_service_is_taken_when_it_is_due_and_then_not_before_its_interval(
    monitored: Connection,
) -> None:
    """C1, C4"""
    await add(monitored, "orders", "http://A.internal/x")
    played = await play(monitored)
    taken = await played.take()
    [service] = taken.services
    assert (service.name, service.url, service.standing) == ("orders", "http://A.internal/x", None)
    assert service.every == timedelta(seconds=30)
    recorded = await played.record([good(service, taken.now)])
    assert recorded.next_due is not None
    assert timedelta(seconds=25) < recorded.next_due <= timedelta(seconds=30)
    taken = await played.take()
    assert taken.services == ()
    assert taken.next_due is not None
    await due(monitored, "orders", -1)
    [service] = (await played.take()).services
    assert service.standing is not None
    assert service.standing.ok
    assert service.standing.latency_ms == 7


async def test_nothing_is_due_where_nothing_is_active(monitored: Connection) -> None:
    await add(monitored, "orders")
    await service_calls.pause_service(monitored, "orders")
    await monitored.execute(
        "INSERT INTO hybrid_runner.jobs (kind, queue, key) VALUES"
        " ('monitors.round', 'monitors', 'monitors:a.internal')"
    )
    played = await play(monitored)
    taken = await played.take()
    assert (taken.services, taken.stopped, taken.next_due) == ((), (), None)
    assert (await played.record()).next_due is None


async def test_what_was_polled_longest_ago_comes_first_and_no_more_than_was_asked_for(
    monitored: Connection,
) -> None:
    """C5"""
    for name in "abcd":
        await add(monitored, name)
    played = await play(monitored)
    await played.poll()
    for place, name in enumerate("cadb"):
        await monitored.execute(
            "UPDATE hybrid_monitors.standings SET polled_at = now() - make_interval(mins => $2),"
            " due_at = now() WHERE name = $1",
            name,
            60 - place,
        )
    taken = await played.take(3)
    assert [each.name for each in taken.services] == ["c", "a", "d"]
    assert taken.next_due == timedelta(0)


async def test_what_is_on_its_way_is_not_given_again_until_it_is_recorded(
    monitored: Connection,
) -> None:
    for name in "abc":
        await add(monitored, name)
    played = await play(monitored)
    first = await played.take(2)
    second = await played.take(2)
    assert [each.name for each in (*first.services, *second.services)] == ["a", "b", "c"]
    await played.record([good(first.services[0], first.now)], last=False)
    await due(monitored, "a", -1)
    assert [each.name for each in (await played.take()).services] == ["a"]


async def test_a_new_claim_of_the_job_begins_with_everything_that_is_due(
    monitored: Connection,
) -> None:
    """The round before it died: nothing of what it had taken was written."""
    await add(monitored, "a")
    assert (await (await play(monitored)).take()).services
    assert (await (await play(monitored)).take()).services


@pytest.mark.parametrize(
    "change",
    [
        RUN,
        "UPDATE hybrid_runner.jobs SET state = 'queued' WHERE key = $1",
        "DELETE FROM hybrid_runner.jobs WHERE key = $1",
    ],
    ids=["claimed anew", "put back by hand", "gone"],
)
async def test_a_stale_claim_takes_nothing_records_nothing_and_probes_nothing(
    monitored: Connection, change: str
) -> None:
    await add(monitored, "a")
    old = await play(monitored)
    taken = await old.take()
    await monitored.execute(change, "monitors:a.internal")
    assert (await monitor_calls.take_round(monitored, old.host, old.job_id, old.claim, 200)) is None
    decisions = [good(each, taken.now) for each in taken.services]
    assert (
        await monitor_calls.record_round(
            monitored,
            old.host,
            old.job_id,
            old.claim,
            decisions,
            (),
            (),
            keeps_polls=True,
            last=True,
        )
    ) is None
    assert (
        await monitor_calls.begin_probes(monitored, old.job_id, old.claim, [1], taken.now)
    ) is None
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.standings") == 0
    assert (await (await play(monitored)).take()).services


@pytest.mark.parametrize("key", [None, "producer:a.internal", "monitors:b.internal"])
async def test_only_the_job_that_has_the_hosts_key_is_its_round(
    monitored: Connection, key: str | None
) -> None:
    """C5: any producer can enqueue another one: nobody would keep to five polls at a time."""
    probed = await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await monitored.execute("UPDATE hybrid_monitors.standings SET breaker = 'open', due_at = now()")
    stored = "SELECT to_jsonb(t)::text FROM hybrid_monitors.standings AS t"
    before = await monitored.fetchval(stored)
    [service] = (await played.take()).services
    job_id, claim = await monitored.fetchrow(
        "INSERT INTO hybrid_runner.jobs (kind, queue, payload, state, claim, worker_id, key) VALUES"
        " ('monitors.round', 'monitors', '{\"host\": \"a.internal\"}', 'running', 5, 'w', $1)"
        " RETURNING id, claim",
        key,
    ) or (0, 0)
    other = replace(played, job_id=job_id, claim=claim)
    now = service.standing.due_at if service.standing else None
    assert now is not None
    with pytest.raises(AssertionError):
        await other.take()
    with pytest.raises(AssertionError):
        await other.record([good(service, now)])
    assert not await monitor_calls.begin_probes(monitored, job_id, claim, [probed], now)
    assert await monitored.fetchval(stored) == before


@pytest.mark.parametrize("act", ["take", "record", "probe"])
async def test_nobody_takes_a_host_away_while_its_round_is_looked_up_or_stored(
    monitored: Connection, monitors_dsn: str, act: str
) -> None:
    """Else two would poll there, or a stale round be stored behind the next one's look."""
    await add(monitored, "a")
    played = await play(monitored)
    taken = await played.take()
    other = await connect(monitors_dsn)
    await other.execute("SET lock_timeout = '1ms'")
    async with monitored.transaction():
        match act:
            case "take":
                await played.take()
            case "record":
                await played.record([good(each, taken.now) for each in taken.services])
            case _:
                await monitor_calls.begin_probes(
                    monitored, played.job_id, played.claim, [1], taken.now
                )
        with pytest.raises(asyncpg.LockNotAvailableError):
            await other.execute(RUN, "monitors:a.internal")
    await other.execute(RUN, "monitors:a.internal")
    await other.close()


async def test_a_paused_and_a_deleted_service_have_stopped_once(monitored: Connection) -> None:
    paused, deleted = await add(monitored, "paused"), await add(monitored, "deleted")
    await add(monitored, "stays")
    played = await play(monitored)
    await played.poll()
    await service_calls.pause_service(monitored, "paused")
    await service_calls.remove_service(monitored, "deleted")
    taken = await played.take()
    assert set(taken.stopped) == {
        Stopped(paused, "paused", is_deleted=False),
        Stopped(deleted, "deleted", is_deleted=True),
    }
    await played.record([], [(each, ()) for each in taken.stopped])
    assert (await played.take()).stopped == ()
    assert await monitored.fetchval("SELECT array_agg(name) FROM hybrid_monitors.standings") == [
        "stays"
    ]


async def test_a_service_that_moves_to_another_host_stops_and_starts_in_one_round(
    monitored: Connection,
) -> None:
    moved = await add(monitored, "moved")
    await (await play(monitored)).poll()
    await service_calls.update_service(monitored, "moved", {"url": "http://b.internal/"})
    there = await play(monitored, "b.internal")
    taken = await there.poll()
    assert taken.stopped == (Stopped(moved, "moved", is_deleted=False),)
    assert [(each.id, each.standing) for each in taken.services] == [(moved, None)]
    old = await (await play(monitored)).take()
    assert (old.services, old.stopped) == ((), ())
    assert await monitored.fetchval("SELECT array_agg(host) FROM hybrid_monitors.standings") == [
        "b.internal"
    ]


async def test_a_changed_address_is_polled_at_once(monitored: Connection) -> None:
    """C4"""
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await service_calls.update_service(monitored, "a", {"url": "http://a.internal/other"})
    [service] = (await played.poll()).services
    assert service.standing is not None
    assert service.standing.url == "http://a.internal/"
    assert (await played.take()).services == ()


async def test_a_service_that_was_renamed_stops_under_its_new_name(monitored: Connection) -> None:
    renamed = await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await service_calls.update_service(monitored, "a", {"name": "b"})
    await due(monitored, "a", -1)
    await played.poll()
    await service_calls.remove_service(monitored, "b")
    assert (await played.take()).stopped == (Stopped(renamed, "b", is_deleted=True),)


async def test_one_that_moves_before_its_first_poll_is_polled_there_and_stops_nowhere(
    monitored: Connection,
) -> None:
    await monitored.execute(ADD_MANY, 150, 1)
    here = await play(monitored, "h0.internal")
    await here.take()
    moved = await monitored.fetchval(
        "UPDATE hybrid_monitors.services SET url = 'http://b.internal/' WHERE name = 's7'"
        " RETURNING id"
    )
    there = await play(monitored, "b.internal")
    taken = await there.poll()
    assert (taken.stopped, [each.id for each in taken.services]) == ((), [moved])
    assert (await (await play(monitored, "h0.internal")).take()).stopped == ()
    host = "SELECT host FROM hybrid_monitors.standings WHERE service_id = $1"
    assert await monitored.fetchval(host, moved) == "b.internal"


async def test_what_was_asked_for_is_polled_whatever_its_due_time_and_before_all_others(
    monitored: Connection,
) -> None:
    for name in "abc":
        await add(monitored, name)
    played = await play(monitored)
    await played.poll()
    await due(monitored, "a", -1)
    await monitor_calls.ask_poll(monitored, "c")
    taken = await played.take()
    assert [(each.name, each.is_asked) for each in taken.services] == [("c", True), ("a", False)]


async def test_an_open_transaction_of_an_editor_holds_up_no_round(
    monitored: Connection, monitors_dsn: str
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    editor = await connect(monitors_dsn)
    transaction = editor.transaction()
    await transaction.start()
    await editor.execute("UPDATE hybrid_monitors.services SET name = 'b', url = 'http://c/'")
    await editor.execute(
        "INSERT INTO hybrid_monitors.windows (label, begins, ends) VALUES"
        " ('{}', now(), now() + interval '1 h')"
    )
    await monitored.execute("SET statement_timeout = '50s'")
    taken = await played.poll()
    assert [each.name for each in taken.services] == ["a"]
    await transaction.rollback()
    await editor.close()
