"""Polls that would come all at once are spread, and what was put off comes at its time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hybrid_runner.policy.monitor_rounds import gathered, place_of
from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored import ADD_MANY, add, age, due, play


@pytest.mark.parametrize("hosts", [50, 101])
async def test_many_new_services_are_spread_over_their_interval(
    monitored: Connection, hosts: int
) -> None:
    """Imports do not come in a burst, whether to one host or to many."""
    await monitored.execute(ADD_MANY, 600, hosts)
    taken = [
        len((await (await play(monitored, f"h{n}.internal")).poll()).services) for n in range(hosts)
    ]
    assert sum(taken) <= 120  # the last hundred are no crowd any more
    dues = [
        row[0]
        for row in await monitored.fetch(
            "SELECT extract(epoch FROM due_at - min(due_at) OVER ())::float8"
            " FROM hybrid_monitors.standings WHERE NOT is_started ORDER BY 1"
        )
    ]
    tenths = [sum(n * 3 <= due_at < n * 3 + 3 for due_at in dues) for n in range(10)]
    assert max(tenths) <= 1.3 * len(dues) / 10


@pytest.mark.parametrize("every", [30, 3600, 45, 10])
async def test_what_is_put_off_comes_when_its_host_s_polls_are_gathered(
    monitored: Connection, every: int
) -> None:
    """C1: else all would be moved there one interval later, and that would be a burst."""
    await monitored.execute(ADD_MANY, 150, 1)
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET every = make_interval(secs => $1)", every
    )
    played = await play(monitored, "h0.internal")
    taken = await played.take()
    place, interval = place_of(played.job_id), timedelta(seconds=every)
    rows = await monitored.fetch(
        "SELECT due_at, count(*) FROM hybrid_monitors.standings GROUP BY 1"
    )
    for due_at, _ in rows:
        assert timedelta(0) <= due_at - taken.now < interval
        moment = gathered(place, due_at, interval, timedelta(seconds=5))
        assert abs(moment - due_at) < timedelta(milliseconds=1)
    counts = [count for _, count in rows]
    assert sum(counts) == 150
    assert max(counts) - min(counts) <= 2


async def test_a_first_poll_that_was_put_off_is_the_first_one_when_it_comes(
    monitored: Connection,
) -> None:
    await monitored.execute(ADD_MANY, 150, 1)
    played = await play(monitored, "h0.internal")
    assert (await played.take()).services == ()
    await monitored.execute("UPDATE hybrid_monitors.standings SET due_at = now()")
    taken = await played.poll()
    assert len(taken.services) == 150
    assert all(each.standing is None for each in taken.services)
    await monitored.execute("UPDATE hybrid_monitors.standings SET due_at = now()")
    assert all(each.standing for each in (await played.take()).services)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM hybrid_monitors.services",
        "UPDATE hybrid_monitors.services SET active = false",
        "UPDATE hybrid_monitors.services SET url = 'http://elsewhere.internal/'",
    ],
    ids=["deleted", "paused", "moved"],
)
async def test_a_service_whose_first_poll_was_put_off_stops_without_a_word(
    monitored: Connection, change: str
) -> None:
    """C13: of what was never polled no start was told."""
    await monitored.execute(ADD_MANY, 150, 1)
    played = await play(monitored, "h0.internal")
    await played.poll()
    await monitored.execute(change)
    taken = await played.take()
    assert (taken.services, taken.stopped, taken.next_due) == ((), (), None)


async def test_of_many_that_stop_at_once_a_round_tells_a_thousand_and_the_next_one_the_others(
    monitored: Connection,
) -> None:
    """C13: somebody deletes all of them in one statement."""
    await monitored.execute(ADD_MANY, 1_001, 1)
    played = await play(monitored, "h0.internal")
    await played.poll()
    await monitored.execute("UPDATE hybrid_monitors.standings SET is_started = true")
    await monitored.execute("DELETE FROM hybrid_monitors.services")
    assert [len((await played.poll()).stopped) for _ in range(3)] == [1_000, 1, 0]


async def test_a_new_service_alone_goes_at_once_beside_many_that_were_put_off(
    monitored: Connection,
) -> None:
    await monitored.execute(ADD_MANY, 150, 1)
    played = await play(monitored, "h0.internal")
    await played.poll()
    # Their one moment may come while this test goes on.
    await monitored.execute("UPDATE hybrid_monitors.standings SET due_at = now() + interval '25 s'")
    await add(monitored, "alone", "http://h0.internal/")
    assert [each.name for each in (await played.take()).services] == ["alone"]


async def test_after_a_restart_what_came_due_meanwhile_is_spread_and_then_polled(
    monitored: Connection,
) -> None:
    """No burst: at most twice the usual rate."""
    await monitored.execute(ADD_MANY, 90, 1)
    played = await play(monitored, "h0.internal")
    await played.poll()
    await age(monitored, 300)
    await monitored.execute("UPDATE hybrid_monitors.services SET every = '1 h' WHERE name = 's7'")
    await due(monitored, "s7", 3000)
    later = "SELECT due_at FROM hybrid_monitors.standings WHERE name = 's7'"
    before = await monitored.fetchval(later)
    taken = await played.take()
    assert len(taken.services) <= 1
    assert await monitored.fetchval(later) == before  # it was not missed
    await due(monitored, "s7", -1)
    due_at = "SELECT max(due_at) - now() FROM hybrid_monitors.standings"
    assert await monitored.fetchval(due_at) <= timedelta(seconds=30)
    await age(monitored, 40)
    # Late again, and not put off again: a fleet that is too small would never poll them.
    assert len((await played.take()).services) >= 89


async def test_a_first_poll_that_was_put_off_is_not_put_off_again(monitored: Connection) -> None:
    """Else where workers come and go it would never be made."""
    await monitored.execute(ADD_MANY, 150, 1)
    played = await play(monitored, "h0.internal")
    assert (await played.take()).services == ()
    await age(monitored, 300)
    assert len((await played.take()).services) == 150


async def test_services_with_short_intervals_are_spread_after_a_short_time_without_anybody(
    monitored: Connection,
) -> None:
    """One that is polled every 5 s has missed one poll after 8 s, and they are many."""
    await monitored.execute(ADD_MANY, 90, 1)
    await monitored.execute("UPDATE hybrid_monitors.services SET every = '5 s'")
    played = await play(monitored, "h0.internal")
    await played.poll()
    await age(monitored, 13)
    assert len((await played.take()).services) <= 45


async def test_what_came_due_while_the_last_round_went_on_is_spread_after_a_restart(
    monitored: Connection,
) -> None:
    """Polls keep their places in time, so it is a batch that comes due just after the look."""
    await monitored.execute(ADD_MANY, 90, 1)
    played = await play(monitored, "h0.internal")
    await played.poll()
    await monitored.execute(
        "UPDATE hybrid_monitors.standings AS t SET due_at = h.looked_at - interval '3 ms',"
        " polled_at = h.looked_at - interval '30 s' FROM hybrid_monitors.hosts AS h"
    )
    await age(monitored, 45)
    assert len((await played.take()).services) <= 1


async def test_what_is_late_since_its_host_is_busy_is_not_put_off(monitored: Connection) -> None:
    await monitored.execute(ADD_MANY, 90, 1)
    played = await play(monitored, "h0.internal")
    await played.poll()
    await age(monitored, 60)
    await monitored.execute("UPDATE hybrid_monitors.hosts SET looked_at = now()")
    assert len((await played.take()).services) == 90
