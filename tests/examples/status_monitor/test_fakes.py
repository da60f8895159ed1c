"""The fake services themselves: tests of monitors believe what they and their journal say."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from examples.status_monitor.fake.journal import read
from examples.status_monitor.fake.scripts import LINK_LOCAL, SCRIPTS, Moment
from examples.status_monitor.fake.server import FakeService, FakeServices
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]


async def get(url: str, **options: Any) -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, allow_redirects=False, **options) as answer,
    ):
        return answer.status, await answer.read()


async def test_services_of_several_hosts_answer_and_the_journal_has_every_request() -> None:
    services = [FakeService("a"), FakeService("b", host="127.0.0.9"), FakeService("c", "failing")]
    async with FakeServices(services) as fakes:
        assert [(await get(fakes.url(name)))[0] for name in "abc"] == [200, 200, 500]
        assert (await get(fakes.url("a")))[0] == 200
    visits = fakes.journal.visits
    assert [(visit.service, visit.host, visit.number) for visit in visits] == [
        ("a", "127.0.0.1", 0),
        ("b", "127.0.0.9", 0),
        ("c", "127.0.0.1", 0),
        ("a", "127.0.0.1", 1),
    ]
    assert all(visit.answered and visit.began <= visit.ended for visit in visits)
    assert visits[0].address == "127.0.0.1/a/dependencies"


async def test_the_journal_counts_what_is_in_flight_for_a_host_and_for_an_address() -> None:
    services = [FakeService("a", "slow"), FakeService("b", "slow", number=3)]
    async with FakeServices(services) as fakes:
        await asyncio.gather(*(get(fakes.url(name)) for name in "aaabb"))
    assert fakes.journal.most_at_host() == 5
    assert fakes.journal.most_at_address() == 3
    assert not any(fakes.journal.in_flight.values())


async def test_a_request_that_its_client_gives_up_has_ended_without_an_answer() -> None:
    async with FakeServices([FakeService("h", "hanging"), FakeService("e", "endless")]) as fakes:
        for name in "he":
            with pytest.raises(TimeoutError):
                await get(fakes.url(name), timeout=aiohttp.ClientTimeout(total=0.2))
        await until(lambda: len(fakes.journal.visits), lambda count: count == 2, what="the visits")
    assert [visit.answered for visit in fakes.journal.visits] == [False, False]


@pytest.mark.parametrize("script", ["closing", "half", "no_http"])
async def test_those_who_break_off_break_off(script: str) -> None:
    async with FakeServices([FakeService("a", script)]) as fakes:
        with pytest.raises(aiohttp.ClientError):
            await get(fakes.url("a"))


async def test_a_service_can_be_told_to_play_something_else() -> None:
    async with FakeServices([FakeService("a")]) as fakes:
        fakes.play("a", "failing")
        assert (await get(fakes.url("a")))[0] == 500


async def test_what_is_sent_elsewhere_is_sent_there() -> None:
    names = ["redirecting", "to_link_local", "target"]
    services = [FakeService(name, name if name in SCRIPTS else "healthy") for name in names]
    async with FakeServices(services) as fakes, aiohttp.ClientSession() as session:
        async with session.get(fakes.url("redirecting")) as answer:
            assert (answer.status, answer.url.path) == (200, "/target/dependencies")
        async with session.get(fakes.url("to_link_local"), allow_redirects=False) as answer:
            assert answer.headers["Location"] == LINK_LOCAL


async def test_every_script_plays_the_same_for_the_same_moment() -> None:
    for script in SCRIPTS.values():
        assert script(Moment(5, 7)) == script(Moment(5, 7))


async def test_in_a_process_of_its_own_it_writes_its_journal_into_a_file(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.status_monitor.fake",
        str(file),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([["a", "healthy", "127.0.0.3", 0]]).encode() + b"\n")
    port = int(await process.stdout.readline())
    headers = {"X-Worker": "7"}
    assert (await get(f"http://127.0.0.3:{port}/a/dependencies", headers=headers))[0] == 200
    process.stdin.write(b"write\n")
    await process.stdout.readline()
    (visit,) = read(file).visits
    assert (visit.service, visit.host, visit.who) == ("a", "127.0.0.3", "7")
    process.stdin.close()
    assert await process.wait() == 0
