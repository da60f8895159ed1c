"""Polls that somebody asks for, and probes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.storage import monitor_calls, service_calls
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.monitored import add, good, one, play


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


async def test_the_answer_of_an_address_that_was_changed_meanwhile_answers_nobody(
    monitored: Connection,
) -> None:
    """Section 7: it is dropped, and the new address is polled for who asks."""
    asked = await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await monitor_calls.ask_poll(monitored, "a")
    taken = await played.take()
    await monitored.execute("UPDATE hybrid_monitors.services SET url = url || 'new'")
    await played.record([good(each, taken.now) for each in taken.services])
    assert (await monitor_calls.answer_of_poll(monitored, asked)).is_pending
    await played.poll()
    assert not (await monitor_calls.answer_of_poll(monitored, asked)).is_pending


async def test_only_who_was_polled_is_answered(monitored: Connection) -> None:
    both = [await add(monitored, name) for name in "ab"]
    played = await play(monitored)
    await played.poll()
    for name in "ab":
        await monitor_calls.ask_poll(monitored, name)
    taken = await played.take()
    first, second = [good(each, taken.now) for each in taken.services]
    await played.record([first, replace(second, polled=None)])
    pending = [(await monitor_calls.answer_of_poll(monitored, each)).is_pending for each in both]
    assert pending == [False, True]


async def test_who_waits_for_a_service_that_is_removed_is_told_so(monitored: Connection) -> None:
    asked = await add(monitored, "a")
    played = await play(monitored)
    await played.poll()
    await monitor_calls.ask_poll(monitored, "a")
    await service_calls.remove_service(monitored, "a")
    await played.poll()
    answer = await monitor_calls.answer_of_poll(monitored, asked)
    assert (answer.is_pending, answer.is_there) == (False, False)


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


async def test_who_asks_for_a_poll_wakes_the_round_of_its_host(monitored: Connection) -> None:
    """It waits for the next due time, which may be an hour from now."""
    signals = "SELECT count(*) FROM hybrid_runner.signals WHERE key = 'monitors:a.internal'"
    await add(monitored, "a")
    await (await play(monitored)).poll()
    before = await monitored.fetchval(signals)
    await monitor_calls.ask_poll(monitored, "a")
    assert await monitored.fetchval(signals) == before + 1


async def test_who_asks_where_there_is_no_job_has_the_host_opened(monitored: Connection) -> None:
    opens = "SELECT count(*) FROM hybrid_runner.jobs WHERE kind = 'monitors.open'"
    await add(monitored, "a")
    await monitored.execute("DELETE FROM hybrid_runner.jobs")
    await monitor_calls.ask_poll(monitored, "a")
    assert await monitored.fetchval(opens) == 1


async def test_who_asks_beside_an_open_transaction_that_asked_is_told_so_soon(
    monitored: Connection, monitors_dsn: str
) -> None:
    """Whether it will be asked for nobody knows yet, and nobody waits for that."""
    await add(monitored, "a")
    await monitored.execute("SET statement_timeout = '20s'")
    other = await connect(monitors_dsn)
    async with other.transaction():
        await monitor_calls.ask_poll(other, "a")
        with pytest.raises(ConfigurationError) as raised:
            await monitor_calls.ask_poll(monitored, "a")
    await other.close()
    assert str(raised.value) == (
        "a poll of service 'a' is asked for in a transaction that is still open: try again once"
        " it has ended"
    )


async def test_one_that_has_moved_during_its_poll_may_be_asked_for(monitored: Connection) -> None:
    """Its new host has another round; what the old one finds is dropped."""
    await add(monitored, "a")
    await (await play(monitored)).take()
    await service_calls.update_service(monitored, "a", {"url": "http://b.internal/"})
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
    row = await monitored.fetchrow(
        "SELECT breaker, due_at, opened_at >= $1 FROM hybrid_monitors.standings", taken.now
    )
    assert tuple(row or ()) == ("half_open", until, True)


async def test_a_service_whose_breaker_is_closed_is_not_probed(monitored: Connection) -> None:
    """C2: a poll that was asked for has closed it, and nothing is to be left alone."""
    played, service, decision = await one(monitored)
    await played.record([decision])
    now = decision.after.due_at
    begin = (monitored, played.job_id, played.claim, [service.id], now)
    assert await monitor_calls.begin_probes(*begin) == set()
    breaker = "SELECT breaker FROM hybrid_monitors.standings"
    assert await monitored.fetchval(breaker) == "closed"
