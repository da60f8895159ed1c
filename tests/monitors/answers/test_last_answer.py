"""An answer that says what the last one said is recognised, and nothing else is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from hybrid_runner.model.monitors import Polled, Same, Standing
from hybrid_runner.monitors.answers.dependencies import parse_dependencies, remember
from hybrid_runner.monitors.answers.poll import poll_group
from hybrid_runner.monitors.answers.prepared import Preparations
from hybrid_runner.monitors.answers.session import open_session
from hybrid_runner.policy.monitored_dependencies import digest_of
from tests.monitors.answers.hostile import Server, answering, message, serving
from tests.monitors.answers.services import NOW, service

ANSWER: list[dict[str, Any]] = [
    {
        "name": "db",
        "healthy": True,
        "health": {"state": 0, "code": 200, "latency": 12},
        "contact": {"team": "payments"},
        "lastChecked": "2030-01-01T00:00:00Z",
    },
    {"name": "mail", "healthy": True, "latencyMs": 7},
]


def changed(index: int, **values: Any) -> list[dict[str, Any]]:
    answer = deepcopy(ANSWER)
    answer[index].update(values)
    return answer


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    ("answer", "latencies"),
    [
        (ANSWER, [12, 7]),
        (changed(0, health={"state": 0, "code": 200, "latency": 99.6}), [100, 7]),
        (changed(0, health={"state": 0, "code": 200}), [0, 7]),
        (changed(1, latencyMs=-4, lastChecked="2031-01-01T00:00:00Z"), [12, 0]),
        (changed(1, latencyMs=None), [12, 0]),
        (changed(1, latencyMs=10**30), [12, 2**31 - 1]),
    ],
)
def test_it_may_have_other_latencies_and_times(
    answer: list[dict[str, Any]], latencies: list[int], *, wrap: bool
) -> None:
    last = remember(deepcopy(ANSWER), parse_dependencies(ANSWER))
    assert last is not None
    given = {"dependencies": deepcopy(answer), "at": 5} if wrap else deepcopy(answer)
    assert last.read(given) == Same(("db", "mail"), latencies)
    parsed = parse_dependencies(answer)
    assert [item.latency_ms for item in parsed.items] == latencies
    assert digest_of(parsed.items) == last.digest


@pytest.mark.parametrize(
    "answer",
    [
        changed(0, healthy=False),
        changed(0, healthy=1),
        changed(0, health={"state": 0.0, "code": 200, "latency": 12}),
        changed(0, health={"state": 1, "code": 200, "latency": 12}),
        changed(0, health=7),
        changed(0, skipped=True),
        changed(0, contact={"team": "shop"}),
        changed(1, name="smtp"),
        changed(1, error={"code": 1}),
        ANSWER[:1],
        [*ANSWER, *ANSWER],
        [*ANSWER, 7],
        [],
        {},
        "db",
        None,
    ],
    ids=str,
)
def test_anything_else_is_another_answer(answer: Any) -> None:
    last = remember(deepcopy(ANSWER), parse_dependencies(ANSWER))
    assert last is not None
    assert last.read(deepcopy(answer)) is None


def test_an_answer_that_names_one_thing_twice_is_not_remembered() -> None:
    twice = [*ANSWER, *ANSWER]
    assert remember(deepcopy(twice), parse_dependencies(twice)) is None


def test_nor_is_one_that_is_nested_too_deeply_to_be_compared() -> None:
    nested: Any = 1
    for _ in range(300):
        nested = [nested]
    deep = [{"name": "db", "healthy": True, "contact": nested}]
    assert remember(deepcopy(deep), parse_dependencies(deep)) is None


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(answering(json.dumps(ANSWER).encode())) as running:
        yield running


async def polls(server: Server, *, version: int | None = 3, **standing: Any) -> list[Polled]:
    """Three of them, of a service that is well from the second one on."""
    digest = digest_of(parse_dependencies(ANSWER).items)
    usual = Standing(NOW, server.url, NOW, ok=True, digest=digest)
    of = service(server.url, version=version, standing=replace(usual, **standing))
    preparations, found = Preparations({}), list[Polled]()
    async with open_session() as session:
        for well in ((), {of.id}, {of.id}):
            found += await poll_group(session, [of], now=NOW, preparations=preparations, well=well)
    return found


async def test_items_of_a_service_that_is_well_are_not_read_again(server: Server) -> None:
    first, second, third = await polls(server)
    assert (len(first.items), first.same) == (2, None)
    assert second.ok
    assert third.ok
    assert (second.items, second.same) == ((), Same(("db", "mail"), [12, 7]))
    assert third.same == second.same


async def test_an_answer_that_says_something_else_is_read_with_all_that_it_says() -> None:
    """Although its latencies and times were left out of the comparison."""
    first = [{"name": "db", "healthy": True, "latencyMs": 5, "lastChecked": "2026-01-01T00:00Z"}]
    second = [{**first[0], "healthy": False, "latencyMs": 6}]
    bodies = iter((first, second, first))

    async def behave(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(message(json.dumps(next(bodies)).encode()))
        await writer.drain()

    async with serving(behave) as server:
        found = await polls(server, digest=digest_of(parse_dependencies(first).items))
    assert [polled.same for polled in found] == [None] * 3
    said = [(item.healthy, item.latency_ms) for polled in found for item in polled.items]
    assert said == [(True, 5), (False, 6), (True, 5)]
    assert all(item.last_checked for polled in found for item in polled.items)


async def test_those_who_share_an_answer_all_read_all_of_it(server: Server) -> None:
    """C6: of one alone the latencies are taken out, to know it again."""
    digest = digest_of(parse_dependencies(ANSWER).items)
    known = Standing(NOW, server.url, NOW, ok=True, digest=digest)
    both = [service(server.url, id=n, version=3, standing=known) for n in (1, 2)]
    preparations = Preparations({})
    async with open_session() as session:
        for _ in range(2):
            found = await poll_group(session, both, now=NOW, preparations=preparations, well={1, 2})
    assert [[item.latency_ms for item in polled.items] for polled in found] == [[12, 7]] * 2


async def test_they_are_when_the_standing_is_of_another_answer(server: Server) -> None:
    assert [len(polled.items) for polled in await polls(server, digest="another")] == [2, 2, 2]


async def test_they_are_when_the_certificate_is_another_one(server: Server) -> None:
    found = await polls(server, certificate_ends_at=NOW)
    assert [len(polled.items) for polled in found] == [2, 2, 2]


async def test_they_are_when_the_service_is_stored_nowhere(server: Server) -> None:
    assert [len(polled.items) for polled in await polls(server, version=None)] == [2, 2, 2]
