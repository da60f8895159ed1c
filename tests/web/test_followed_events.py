"""Streams that go on with the jobs that an end has stored (B13)."""

from __future__ import annotations

import pytest

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.stream import events, reader
from tests.support.followed import stored_by_its_end
from tests.support.streams import Stepwise, served, status_of

MADE = """
INSERT INTO hybrid_runner.jobs (kind, queue)
SELECT 'steps', 'default' FROM generate_series(1, $1) RETURNING id
"""


async def made(database: Connection, count: int) -> list[int]:
    """So many jobs that nobody claims yet."""
    await database.execute("SELECT hybrid_runner.pause('default')")
    return [row["id"] for row in await database.fetch(MADE, count)]


async def cancelled(database: Connection, *jobs: int) -> None:
    for job in jobs:
        assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job) == "cancelled"


async def test_an_end_names_what_it_has_stored_and_the_stream_goes_on_if_asked(
    dsn: str, database: Connection
) -> None:
    """B13: `data.id` says which job an event is about."""
    async with served(Stepwise(dsn).app) as (client, _):
        first, second, third = await made(database, 3)
        await stored_by_its_end(database, {first: [second], second: [third]})
        async with (
            client.events(f"/jobs/{first}/events?follow_ups=true") as chain,
            client.events(f"/jobs/{first}/events") as alone,
        ):
            assert (await chain.next()).name == "queued"
            await cancelled(database, first)
            assert (await alone.until("cancelled")).data["followed_by"] == [second]
            assert await alone.rest() == []
            end = await chain.next()
            assert (end.name, end.data["id"], end.data["followed_by"]) == (
                "cancelled",
                first,
                [second],
            )
            after = await chain.next()
            assert (after.name, after.data["id"]) == ("queued", second)
            await cancelled(database, second)
            assert (await chain.until("queued")).data["id"] == third
            await cancelled(database, third)
            last = await chain.next()
            assert (last.name, last.data["id"], last.data["followed_by"]) == (
                "cancelled",
                third,
                None,
            )
            assert await chain.rest() == []


async def test_a_client_that_comes_back_is_sent_all_jobs_again_until_it_has_seen_their_ends(
    dsn: str, database: Connection
) -> None:
    """B13: the id counts the ends that it has seen, so that 204 tells a browser to stop."""
    async with served(Stepwise(dsn).app) as (client, _):
        first, second = await made(database, 2)
        await stored_by_its_end(database, {first: [second]})
        path = f"/jobs/{first}/events?follow_ups=true"
        async with client.events(path) as seen:
            assert (await seen.next()).id == "0"
            await cancelled(database, first)
            assert (await seen.next()).id == "1"
            assert (await seen.next()).id == "1"
        async with client.events(path, seen="1") as again:
            assert [(await again.next()).data["id"] for _ in range(2)] == [first, second]
            await cancelled(database, second)
            assert (await again.next()).id == "2"
            assert await again.rest() == []
        async with client.events(path, seen="1") as late:
            assert await late.rest() == ["cancelled", "cancelled"]
        async with client.session.get(path, headers={"Last-Event-ID": "2"}) as response:
            assert response.status == 204


async def test_a_job_that_was_stored_and_is_gone_is_told_and_holds_nothing_up(
    dsn: str, database: Connection
) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        first, second = await made(database, 2)
        await stored_by_its_end(database, {first: [second, 999_999]})
        await cancelled(database, first, second)
        async with client.events(f"/jobs/{first}/events?follow_ups=true") as seen:
            assert await seen.rest() == ["cancelled", "cancelled", "gone"]


async def test_so_many_jobs_are_followed_and_no_more(
    dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one request can make others read is bounded."""
    for module in (reader, events):
        monkeypatch.setattr(module, "MOST_FOLLOWED", 2)
    async with served(Stepwise(dsn).app) as (client, _):
        first, second, third = await made(database, 3)
        await stored_by_its_end(database, {first: [second], second: [third]})
        await cancelled(database, first, second, third)
        async with client.events(f"/jobs/{first}/events?follow_ups=true") as seen:
            assert [(await seen.next()).data.get("id") for _ in range(2)] == [first, second]
            assert "as many as may be" in (await seen.next()).data["reason"]
            assert await seen.rest() == []
        async with client.session.get(
            f"/jobs/{first}/events?follow_ups=true", headers={"Last-Event-ID": "1"}
        ) as response:
            assert response.status == 204, "a browser would come back every two seconds"


async def test_a_question_that_is_not_understood_is_refused(dsn: str, database: Connection) -> None:
    async with served(Stepwise(dsn).app) as (client, _):
        [job] = await made(database, 1)
        for query, status in (
            ("?follow_ups=false", 200),
            ("?follow_ups=yes", 400),
            ("?follow_ups", 400),
            ("?followups=true", 400),
            ("?queue=default", 400),
        ):
            assert await status_of(client, f"/jobs/{job}/events{query}") == status, query
