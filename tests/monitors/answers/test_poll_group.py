from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner.monitors.answers.expect import status
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.mapping import Equals, Mapping
from hybrid_runner.monitors.answers.previews import parse_answer, preview_service
from tests.monitors.answers.hostile import Server, answering, message, serving
from tests.monitors.answers.services import poll, poll_one, service
from tests.support.waiting import until

BODY = b'{"dependencies": [{"name": "db", "healthy": true, "up": "no"}], "components": {"x": 3}}'
STANDARD: dict[str, Any] = {}
MAPPED = {
    "format": "mapping",
    "mapping": Mapping(root="dependencies", name="name", healthy=Equals("up", "yes")).stored(),
}
ODD = {
    "format": "mapping",
    "mapping": Mapping(root="components", name="$key", healthy="ok").stored(),
}
NOWHERE = {
    "format": "mapping",
    "mapping": Mapping(root="nowhere", name="$key", healthy="ok").stored(),
}
STATUS = {"format": "status"}
PICKY = {"format": "status", "expect": status(equals=204).stored()}
BROKEN = {"format": "mapping", "mapping": {"fields": {}}}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(answering(BODY)) as running:
        yield running


async def test_services_of_one_address_share_a_request_and_each_reads_it_for_itself(
    server: Server,
) -> None:
    """C6; section 7: same URL, two mappings; section 9: parse and write per service."""
    definitions = [STANDARD, MAPPED, ODD, NOWHERE, STATUS, PICKY, BROKEN]
    polls = await poll(*(service(server.url, id=n, **d) for n, d in enumerate(definitions)))
    assert len(server.requests) == 1
    assert [polled.service_id for polled in polls] == [0, 1, 2, 3, 4, 5, 6]
    standard, mapped, odd, nowhere, plain, picky, broken = polls
    assert [(item.name, item.healthy) for item in standard.items] == [("db", True)]
    assert [(item.name, item.healthy) for item in mapped.items] == [("db", False)]
    assert (odd.ok, odd.items, odd.warnings) == (True, (), ("an item is 3, no object",))
    assert standard.warnings == mapped.warnings == ()
    assert (nowhere.failure, plain.ok, plain.items) == ("parse", True, ())
    assert picky.error == "expect.status: found 200, wanted equals 204"
    assert (broken.failure, broken.error) == ("definition", "mapping.fields.name is missing")


async def test_only_one_of_those_that_share_a_request_tells_how_long_its_phases_were(
    server: Server,
) -> None:
    polls = await poll(service(server.url, id=1), service(server.url, id=2))
    assert [bool(polled.phases) for polled in polls] == [True, False]
    assert {polled.latency_ms for polled in polls} == {polls[0].latency_ms}


async def test_nobody_is_asked_when_no_definition_can_be_used(server: Server) -> None:
    (polled,) = await poll(service(server.url, **BROKEN))
    assert (polled.failure, server.requests) == ("definition", [])


async def test_each_service_keeps_its_own_time_out() -> None:
    """C7: also where another one's is longer, and the answer is waited for."""
    clock = asyncio.get_running_loop().time

    async def hesitate(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began = clock()
        await until(lambda: clock() - began > 0.1)
        writer.write(message())
        await writer.drain()

    async with serving(hesitate) as server:
        quick = service(server.url, id=1, timeout=timedelta(milliseconds=50))
        polls = await poll(quick, service(server.url, id=2))
    assert (polls[0].failure, polls[0].error) == ("timeout", "no answer within 0.05s")
    assert polls[1].ok


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"format": "mapping"}, "mapping is missing"),
        ({"format": "prometheus"}, "format 'prometheus' is unknown"),
        ({"mapping": [], "format": "mapping"}, "mapping must be an object"),
        ({"expect": {"status": 200}}, "expect.status must be an object"),
        ({"headers": {"Host": "x"}}, "headers.Host is set by the poller"),
        ({"headers": {"X": 3}}, "headers.X must be a text"),
        ({"headers": []}, "headers must be an object"),
        ({"url": "ftp://a/"}, "url must begin with"),
        ({"url": "http://u:p@127.0.0.1/"}, "url has a user or password"),
        ({"url": "http://[::1/"}, "url must begin with"),
        ({"url": "http://[zz]/"}, ""),
        ({"url": "http://%00/"}, ""),
        ({"url": "http://a\ud800/"}, ""),
        ({"url": "http://xn--/"}, ""),
    ],
)
async def test_stored_nonsense_is_a_failed_poll_that_names_the_field(
    server: Server, changed: dict[str, Any], line: str
) -> None:
    polled = await poll_one(changed.pop("url", server.url), **changed)
    assert polled.failure in ({"definition"} if line else {"definition", "dns"})
    assert line in (polled.error or "")
    assert server.requests == []


async def test_expect_decides_about_the_status_where_nothing_else_is_read() -> None:
    async with serving(answering(status="404 Gone")) as server:
        wanted = {"expect": status(equals=404).stored()}
        assert (await poll_one(server.url, format="status", **wanted)).ok
        assert (await poll_one(server.url, **wanted)).failure == "http"
        unasked = {"expect": {"latency": {"below": 60_000}}}
        assert (await poll_one(server.url, format="status", **unasked)).failure == "http"


async def test_a_preview_is_a_poll_of_a_service_that_nobody_stored(server: Server) -> None:
    mapping = Mapping(root="dependencies", name="name", healthy="healthy")
    (polled,) = await poll(preview_service(server.url, mapping, expect=status(equals=200)))
    assert [item.name for item in polled.items] == ["db"]
    (polled,) = await poll(preview_service(server.url))
    assert [item.name for item in polled.items] == ["db"]


def test_an_answer_can_be_parsed_alone() -> None:
    mapping = Mapping(root="dependencies", name="name", healthy=Equals("up", "no"))
    assert [item.healthy for item in parse_answer(BODY, mapping).items] == [True]
    assert [item.name for item in parse_answer(BODY).items] == ["db"]
    assert parse_answer(BODY, ODD["mapping"]).warnings == ("an item is 3, no object",)  # type: ignore[arg-type]
    with pytest.raises(PollFailed):
        parse_answer(b"<html>", mapping)
