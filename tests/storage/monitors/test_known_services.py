"""What a worker knows of services is not read again, until somebody writes one of their rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hybrid_runner.model.monitors import Item, Known, Recorded, Taken, Unchanged
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored import PlayedRound, add, dependency, good, play, stored

WINDOW = (
    "INSERT INTO hybrid_monitors.windows (label, begins, ends)"
    " VALUES ('{}', now() - interval '1 h', now() + interval '1 h')"
)
DUE = "UPDATE hybrid_monitors.standings SET due_at = now() - interval '1 s'"


async def take(played: PlayedRound, *known: Known) -> Taken:
    taken = await monitor_calls.take_round(
        played.on,
        *(played.host, played.job_id, played.claim, 200),
        {each.service.id: each for each in known},
    )
    assert taken is not None
    return taken


async def learn(on: Connection, played: PlayedRound, name: str = "a") -> Known:
    """A service as a worker knows it after its second poll; it is due."""
    service_id = await on.fetchval(
        "SELECT id FROM hybrid_monitors.services WHERE name = $1", name
    ) or await add(on, name)
    taken = await played.take()
    first = {each.id: each for each in taken.services}[service_id]
    decision = good(first, taken.now, digest="x", since=taken.now)
    found = stored(Item("db", healthy=True), service_id)
    await played.record([replace(decision, dependencies=(found,))])
    await on.execute(DUE + f" WHERE service_id = {service_id}")
    taken = await played.take()
    second = {each.id: each for each in taken.services}[service_id]
    after = replace(good(second, taken.now).after, due_at=taken.now)
    recorded = await played.record([replace(good(second, taken.now), after=after)])
    return Known(
        replace(second, standing=after), recorded.version, after.due_at, after.polled_at, 7
    )


def same(known: Known, taken: Taken, latencies: list[int]) -> Unchanged:
    ids = list((known.service.dependency_ids or {}).values())
    due_at = taken.now + timedelta(seconds=30)
    return Unchanged(known.service.id, due_at, taken.now, 9, ids, latencies)


async def record(played: PlayedRound, *unchanged: Unchanged) -> Recorded:
    recorded = await monitor_calls.record_round(
        played.on,
        *(played.host, played.job_id, played.claim, (), (), ()),
        keeps_polls=False,
        last=True,
        unchanged=unchanged,
    )
    assert recorded is not None
    return recorded


async def test_a_service_that_is_as_the_worker_knows_it_is_only_named(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    assert known.service.dependency_ids == {
        "db": (await dependency(monitored, known.service.id, "db")).id
    }
    for _ in range(3):
        taken = await take(played, known)
        assert taken.recognised == {known.service.id: known}
        assert taken.services == (known.service,)
        known.standing_version = (await record(played, same(known, taken, [4]))).version
        await monitored.execute("SELECT")
        assert (await take(played, known)).services == ()  # it is not due
        version = await monitored.fetchval(
            "SELECT xmin::text::bigint FROM hybrid_monitors.standings"
        )
        assert version == known.standing_version
        await monitored.execute(DUE)
        known.standing_version = await monitored.fetchval(
            "SELECT xmin::text::bigint FROM hybrid_monitors.standings"
        )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE hybrid_monitors.services SET timeout = '3 s'",
        'UPDATE hybrid_monitors.services SET labels = \'{"team": "a"}\'',
        "UPDATE hybrid_monitors.standings SET failures = 3",
        "INSERT INTO hybrid_monitors.asked (service_id) SELECT id FROM hybrid_monitors.services",
        WINDOW,
    ],
)
async def test_one_that_somebody_has_changed_is_read_again(
    monitored: Connection, change: str
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    await monitored.execute(change)
    taken = await take(played, known)
    assert taken.recognised == {}
    assert [each.name for each in taken.services] == ["a"]
    assert taken.services[0] is not known.service


async def test_one_whose_parent_went_down_is_read_again(monitored: Connection) -> None:
    """Nothing of its own was written, and bad news of it is not to be told."""
    parent = await add(monitored, "parent", "http://b.internal/")
    await add(monitored, "a")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET depends_on = $1 WHERE name = 'a'", parent
    )
    there = await play(monitored, "b.internal")
    await there.poll()
    played = await play(monitored)
    known = await learn(monitored, played)
    assert list((await take(played, known)).recognised) == [known.service.id]
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET is_down = true WHERE service_id = $1", parent
    )
    played = await play(monitored)
    taken = await take(played, known)
    assert (taken.recognised, taken.services[0].suppressed) == ({}, "parent")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE hybrid_monitors.services SET active = false",
        "DELETE FROM hybrid_monitors.services",
        "UPDATE hybrid_monitors.services SET url = 'http://b.internal/'",
    ],
)
async def test_one_that_is_not_here_any_more_is_not_taken(
    monitored: Connection, change: str
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    await monitored.execute(change)
    assert (await take(played, known)).services == ()


async def test_the_known_and_the_others_come_in_the_order_of_their_last_polls(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played, "a")
    await add(monitored, "b", "http://a.internal/2")
    taken = await take(played, known)
    assert [each.name for each in taken.services] == ["b", "a"]  # never polled comes first
    assert list(taken.recognised) == [known.service.id]


async def test_a_known_one_that_is_not_due_stands_for_no_other(monitored: Connection) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    taken = await take(played, known)
    known.standing_version = (await record(played, same(known, taken, [4]))).version
    await add(monitored, "b")
    taken = await take(played, known)
    assert ([each.name for each in taken.services], taken.recognised) == (["b"], {})


async def test_times_and_latencies_are_stored_and_nothing_else(monitored: Connection) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    before = dict(await monitored.fetchrow("SELECT * FROM hybrid_monitors.standings") or {})
    taken = await take(played, known)
    recorded = await record(played, same(known, taken, [41]))
    assert recorded.next_due is not None
    assert recorded.next_due <= timedelta(seconds=30)
    after = dict(await monitored.fetchrow("SELECT * FROM hybrid_monitors.standings") or {})
    assert {name for name in after if after[name] != before[name]} == {
        *("due_at", "polled_at", "latency_ms")
    }
    assert (after["polled_at"], after["latency_ms"]) == (taken.now, 9)
    [row] = await monitored.fetch(
        "SELECT dependency_ids, milliseconds FROM hybrid_monitors.latencies"
    )
    assert tuple(row) == (list((known.service.dependency_ids or {}).values()), [41])


@pytest.mark.parametrize(
    "change", ["SET active = false", "SET url = 'http://a.internal/9'", "SET url = 'http://b/'"]
)
async def test_nothing_is_stored_of_one_that_was_changed_during_its_poll(
    monitored: Connection, change: str
) -> None:
    await add(monitored, "a")
    await add(monitored, "b", "http://a.internal/2")
    played = await play(monitored)
    one, other = await learn(monitored, played, "a"), await learn(monitored, played, "b")
    await monitored.execute(DUE)
    one.standing_version = other.standing_version = await monitored.fetchval(
        "SELECT max(xmin::text::bigint) FROM hybrid_monitors.standings"
    )
    taken = await take(played, one, other)
    assert set(taken.recognised) == {one.service.id, other.service.id}
    await monitored.execute(f"UPDATE hybrid_monitors.services {change} WHERE name = 'a'")
    await record(played, same(one, taken, [41]), same(other, taken, [42]))
    polled = await monitored.fetch(
        "SELECT name FROM hybrid_monitors.standings WHERE polled_at = $1", taken.now
    )
    assert [row["name"] for row in polled] == ["b"]
    latencies = await monitored.fetch("SELECT milliseconds FROM hybrid_monitors.latencies")
    assert [row["milliseconds"] for row in latencies] == [[42]]


async def test_latencies_that_cannot_be_summed_up_are_not_stored(monitored: Connection) -> None:
    """Upkeep would fail for good."""
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    taken = await take(played, known)
    await record(played, same(known, taken, [-1]))
    assert await monitored.fetchval("SELECT count(*) FROM hybrid_monitors.latencies") == 0


@pytest.mark.parametrize(
    ("ids", "latencies", "kept"),
    [([None, 5], [3, 4], ([5], [4])), ([5, 6], [4], ([5], [4])), ([5, 6], [4, 0], ([5], [4]))],
)
async def test_nor_are_those_of_nothing_or_without_a_pair(
    monitored: Connection, ids: list[int | None], latencies: list[int], kept: tuple[list[int], ...]
) -> None:
    """Whatever a worker says."""
    service_id = await add(monitored, "a")
    played = await play(monitored)
    taken = await played.poll()
    await monitored.execute(
        "SELECT hybrid_monitors.store_same($1, ARRAY[$2::bigint], ARRAY[$3::timestamptz],"
        " ARRAY[$3::timestamptz], ARRAY[7], ARRAY[$2, $2], $4, $5, $3)",
        played.host,
        service_id,
        taken.now,
        ids,
        latencies,
    )
    rows = await monitored.fetch(
        "SELECT dependency_ids, milliseconds FROM hybrid_monitors.latencies"
    )
    assert [tuple(row) for row in rows] == [kept]


async def test_the_round_of_one_host_says_nothing_of_services_of_another(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    here = await play(monitored)
    known = await learn(monitored, here)
    taken = await take(here, known)
    await add(monitored, "b", "http://b.internal/")
    there = await play(monitored, "b.internal")
    await there.take()
    await record(there, same(known, taken, [41]))
    latest = "SELECT max(polled_at) FROM hybrid_monitors.standings"
    assert await monitored.fetchval(latest) == known.polled_at


async def test_many_latencies_are_stored_in_rows_that_need_no_compression(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    known = await learn(monitored, played)
    taken = await take(played, known)
    due_at = taken.now + timedelta(seconds=30)
    ids, latencies = list(range(1000, 1500)), list(range(1, 501))
    await record(played, Unchanged(known.service.id, due_at, taken.now, 9, ids, latencies))
    rows = await monitored.fetch(
        "SELECT dependency_id, ms FROM hybrid_monitors.latency_history ORDER BY dependency_id"
    )
    assert [tuple(row) for row in rows] == list(zip(ids, latencies, strict=True))
    sizes = "SELECT max(pg_column_size(l.*)) FROM hybrid_monitors.latencies AS l"
    assert await monitored.fetchval(sizes) < 1800  # and a name of a host of 253 bytes
