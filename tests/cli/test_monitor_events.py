"""hybrid-runner monitors events: which of the past are shown, and how an outage is waited for."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hybrid_runner.cli.monitors import events
from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.storage import monitor_view_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored_pages import Monitored, monitored
from tests.support.waiting import until_fetched

MANY = """
INSERT INTO hybrid_monitors.events (id, at, kind, service_id, payload)
SELECT n, now(), CASE WHEN n % 700 = 1 THEN 'service:down' ELSE 'service:up' END, 1, '{}'
FROM generate_series(1, $1::int) AS n
"""
READERS = """
SELECT coalesce(pg_sequence_last_value('hybrid_monitors.event_readers_until'), 0)
    > extract(epoch FROM clock_timestamp()) * 1000
"""


def asked(**more: object) -> argparse.Namespace:
    """What the command line says."""
    usual = {
        "after": None,
        "limit": 20,
        "kind": None,
        "service": None,
        "suppressed": False,
        "follow": False,
        "json": True,
    }
    return argparse.Namespace(**{**usual, **more})


@pytest.fixture
async def here(database: Connection, monkeypatch: pytest.MonkeyPatch) -> Monitored:
    """A database with monitors, which the command finds open."""

    @asynccontextmanager
    async def opened(_: argparse.Namespace) -> AsyncIterator[Connection]:
        yield database

    monkeypatch.setattr(events, "monitored", opened)
    return await monitored(database)


async def many(here: Monitored, number: int) -> None:
    await here.database.execute(MANY, number)
    await here.database.execute("UPDATE hybrid_monitors.event_numbers SET last = $1", number)


def ids(printed: str) -> list[int]:
    return [json.loads(line)["id"] for line in printed.splitlines()]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"kind": ["service:down"]}, [1, 701, 1401, 2101]),
        ({"kind": ["service:down"], "limit": 2}, [1401, 2101]),
        ({"kind": ["service:down"], "after": 1}, [701, 1401, 2101]),
        ({"kind": ["service:down"], "after": 0, "limit": 3}, [1, 701, 1401]),
        ({"kind": ["service:error"]}, []),
        ({"limit": 3}, [2198, 2199, 2200]),
        ({"limit": 3, "after": 500}, [501, 502, 503]),
        ({"limit": 0}, []),
        ({"limit": 0, "after": 0}, []),
    ],
)
async def test_the_past_is_searched_as_far_as_it_goes(
    here: Monitored, capsys: pytest.CaptureFixture[str], said: dict[str, object], found: list[int]
) -> None:
    """What was asked for may be rare among very many."""
    await many(here, 2200)
    assert await events.listen(asked(**said)) == 0
    assert ids(capsys.readouterr().out) == found


class _Enough(Exception):
    """Ends a command that would go on for ever."""


async def test_following_goes_on_behind_the_past_that_was_shown(
    here: Monitored, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(here, 1200)
    looks = 0

    async def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            number = await here.event("service:down", 1)
            assert number == 1201
        else:
            raise _Enough

    monkeypatch.setattr("hybrid_runner.cli.monitors.events.asyncio.sleep", sleep)
    with pytest.raises(_Enough):
        await events.listen(asked(follow=True, after=0, limit=3))
    said = capsys.readouterr()
    assert ids(said.out) == [*range(1, 1202)]
    assert said.err == ""
    await until_fetched(here.database, READERS, True)  # good polls are stored meanwhile


async def test_what_happens_while_the_past_is_read_is_shown_once(
    here: Monitored, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(here, 12)

    async def seen_before(_: object) -> int:
        return 10

    async def sleep(_: float) -> None:
        raise _Enough

    monkeypatch.setattr(monitor_view_calls, "newest_event", seen_before)
    monkeypatch.setattr("hybrid_runner.cli.monitors.events.asyncio.sleep", sleep)
    with pytest.raises(_Enough):
        await events.listen(asked(follow=True))
    assert ids(capsys.readouterr().out) == [*range(1, 13)]


async def test_who_follows_is_told_of_events_that_are_gone_already(
    here: Monitored, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(here, 10)
    await here.database.execute("DELETE FROM hybrid_monitors.events WHERE id <= 6")

    async def sleep(_: float) -> None:
        raise _Enough

    monkeypatch.setattr("hybrid_runner.cli.monitors.events.asyncio.sleep", sleep)
    with pytest.raises(_Enough):
        await events.listen(asked(follow=True, after=2, limit=0))
    said = capsys.readouterr()
    assert (ids(said.out), said.err) == (
        [7, 8, 9, 10],
        "hybrid-runner: 4 events are forgotten already\n",
    )


async def test_an_outage_of_a_day_is_waited_for_at_most_five_seconds_at_a_time(
    here: Monitored, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, pauses = 0, list[float]()

    @asynccontextmanager
    async def opened(_: argparse.Namespace) -> AsyncIterator[Connection]:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise DatabaseUnavailable("nobody answers")
        yield here.database

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20_000:
            raise _Enough

    monkeypatch.setattr(events, "monitored", opened)
    monkeypatch.setattr("hybrid_runner.cli.monitors.events.asyncio.sleep", sleep)
    with pytest.raises(_Enough):
        await events.listen(asked(follow=True))
    assert pauses[:6] == pytest.approx([0.6, 1.2, 2.4, 4.8, 5, 5])
    assert max(pauses) == 5
    assert capsys.readouterr().err == ("hybrid-runner: nobody answers: going on once it answers\n")


async def test_events_of_one_service_are_shown_alone(
    here: Monitored, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, other = await here.up("orders"), await here.up("other")
    numbers = [await here.event("service:down", each) for each in (orders, other, orders)]
    assert await events.listen(asked(service="orders")) == 0
    assert ids(capsys.readouterr().out) == [numbers[0], numbers[2]]
