"""Postgres's clock is set back: as if all that is stored had been written so much later."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hybrid_runner.model.monitors import host_key
from hybrid_runner.policy.monitor_rounds import APART
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.monitors import Monitors
from tests.support.monitored import ADD_MANY, add, age, good, play

EVERY = timedelta(seconds=30)
WAIT = (
    "UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL, worker_id = NULL,"
    " started_at = NULL, waits_for = key, run_at = now() + make_interval(secs => $1)"
    " WHERE key IS NOT NULL"
)
SIGNALS = "SELECT count(*) FROM hybrid_runner.signals WHERE key = $1"
AHEAD = (
    "SELECT count(*) FROM hybrid_monitors.standings,"
    " unnest(ARRAY[polled_at, since, contrary_since, opened_at]) AS u (at)"
    " WHERE u.at > clock_timestamp()"
)


async def test_services_are_polled_within_their_interval_and_not_in_a_burst(
    monitored: Connection,
) -> None:
    """C4: also those whose first poll was put off."""
    await monitored.execute(ADD_MANY, 90, 1)
    await monitored.execute("UPDATE hybrid_monitors.services SET every = '1 min'")
    played = await play(monitored, "h0.internal")
    await played.poll()
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET is_started = false, polled_at = NULL WHERE"
        " service_id % 3 = 0"
    )
    await age(monitored, -86_400)
    taken = await played.take()
    assert len(taken.services) <= 1
    assert taken.next_due is not None
    assert taken.next_due <= APART
    assert await monitored.fetchval(AHEAD) == 0
    moments = await monitored.fetch(
        "SELECT count(*), max(due_at) <= clock_timestamp() + interval '1 min'"
        " FROM hybrid_monitors.standings GROUP BY due_at"
    )
    assert [tuple(row) for row in moments] == [(45, True)] * 2
    await age(monitored, taken.next_due.total_seconds())
    assert len((await played.take()).services) == 45


async def test_a_few_seconds_are_nothing(monitored: Connection) -> None:
    """Clocks are corrected all the time."""
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    before = await monitored.fetchval("SELECT due_at FROM hybrid_monitors.standings")
    await age(monitored, -4)
    await played.take()
    after = await monitored.fetchval("SELECT due_at FROM hybrid_monitors.standings")
    assert after == before + timedelta(seconds=4)


async def test_more_than_that_is_noticed_and_nothing_lies_ahead(monitored: Connection) -> None:
    """C4"""
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET since = now(), contrary_since = now(), opened_at ="
        " now()"
    )
    await age(monitored, -10)
    assert await monitored.fetchval(AHEAD) == 4
    await played.take()
    assert await monitored.fetchval(AHEAD) == 0


async def test_what_has_not_happened_gets_no_time(monitored: Connection) -> None:
    """C4: a service that was never polled stays one, and a closed breaker was not opened."""
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    times = "polled_at, since, contrary_since, opened_at"
    await monitored.execute(
        f"UPDATE hybrid_monitors.standings SET ({times}) = (NULL, NULL, NULL, NULL)"
    )
    await age(monitored, -86_400)
    await played.take()
    row = await monitored.fetchrow(f"SELECT {times} FROM hybrid_monitors.standings")
    assert tuple(row or ()) == (None,) * 4


async def test_what_was_before_the_time_that_it_is_now_stays_as_it_is(
    monitored: Connection,
) -> None:
    """Also a service that is due: it is polled at once."""
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await age(monitored, -86_400)
    times = "due_at, polled_at, since, contrary_since, opened_at"
    before = await monitored.fetchrow(
        "UPDATE hybrid_monitors.standings SET"
        f" ({times}) = (now() - interval '1 s', now() - interval '2 s', now() - interval '3 s',"
        f" now() - interval '4 s', now() - interval '5 s') RETURNING {times}"
    )
    assert len((await played.take()).services) == 1
    row = await monitored.fetchrow(f"SELECT {times} FROM hybrid_monitors.standings")
    assert row == before


async def test_services_of_other_hosts_are_mended_by_their_own_rounds(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    await add(monitored, "b", "http://b.internal/")
    played, other = await play(monitored), await play(monitored, "b.internal")
    await played.poll()
    await other.poll()
    await age(monitored, -86_400)
    await played.take()
    assert await monitored.fetchval(AHEAD) > 0
    await other.take()
    assert await monitored.fetchval(AHEAD) == 0


@pytest.mark.parametrize(
    "waits",
    [
        "waits_for = NULL",
        "waits_for = 'another key'",
        "run_at = now()",
        "state = 'running', claim = 1, worker_id = 'w', started_at = now()",
    ],
)
async def test_a_job_that_no_signal_would_wake_is_not_counted_as_woken(
    monitored: Connection, waits: str
) -> None:
    """One that failed and waits for its next attempt, or is woken already."""
    await add(monitored, "a")
    await (await play(monitored)).poll()
    await monitored.execute(WAIT, 86_425)
    await age(monitored, -86_400)
    wake = "SELECT hybrid_monitors.wake_set_back()"
    assert await monitored.fetchval(wake) == 1
    await monitored.execute(f"UPDATE hybrid_runner.jobs SET {waits} WHERE key IS NOT NULL")
    assert await monitored.fetchval(wake) == 0


async def test_for_a_few_seconds_nobody_is_woken(monitored: Connection) -> None:
    await add(monitored, "a")
    await (await play(monitored)).poll()
    await monitored.execute(WAIT, 25)
    await age(monitored, -4)
    assert await monitored.fetchval("SELECT hybrid_monitors.wake_set_back()") == 0


async def test_a_round_in_the_middle_of_which_it_is_set_back_hides_nothing(
    monitored: Connection,
) -> None:
    """It records what was found with times of before."""
    await add(monitored, "a")
    played = await play(monitored)
    taken = await played.take()
    await age(monitored, -86_400)
    later = taken.now + timedelta(days=1)
    await played.record([good(each, later) for each in taken.services])
    again = await played.take()
    assert again.next_due is not None
    assert again.next_due <= EVERY


async def test_an_open_breaker_is_probed_one_cool_down_later_at_most(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET breaker = 'open', opened_at = now()"
    )
    await age(monitored, -86_400)
    await played.take()
    await monitored.execute("UPDATE hybrid_monitors.standings SET due_at = now()")
    taken = await played.take()
    [service] = taken.services
    assert service.standing is not None
    assert service.standing.opened_at is not None
    assert service.standing.opened_at < taken.now


async def test_rounds_and_upkeep_that_wait_for_a_time_far_ahead_are_woken(
    monitored: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """The duty says so once; what was woken already, or runs, is left alone."""
    await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await monitor_calls.upkeep(monitored)
    await monitored.execute(
        "INSERT INTO hybrid_runner.jobs (kind, queue, key)"
        " VALUES ('monitors.upkeep', 'monitors', 'monitors.upkeep')"
    )
    await monitored.execute(WAIT, 25)
    duty, keys = Monitors(), (host_key("a.internal"), "monitors.upkeep")
    before = [await monitored.fetchval(SIGNALS, key) for key in keys]
    await duty.run(monitored)
    assert not caplog.records
    await age(monitored, -86_400)
    await monitored.execute(
        "UPDATE hybrid_monitors.upkeep_runs SET ended_at = ended_at + interval '1 day'"
    )
    await monitored.execute(WAIT, 86_425)
    await duty.run(monitored)
    [line] = [record.getMessage() for record in caplog.records]
    assert line.endswith("2 rounds of monitors were woken")
    assert [await monitored.fetchval(SIGNALS, key) for key in keys] == [n + 1 for n in before]
    await monitored.execute(WAIT, -1)
    await duty.run(monitored)
    assert len(caplog.records) == 1
