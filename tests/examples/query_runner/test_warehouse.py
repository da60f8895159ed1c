"""The fake warehouse misbehaves as its scripts say, and its client tells that from an answer."""

from __future__ import annotations

import asyncio

import pytest

from examples.query_runner.fake.scripts import NEVER, SCRIPTS, Script, script_of
from examples.query_runner.fake.server import FakeWarehouse
from examples.query_runner.warehouse import Status, Unreachable, Warehouse

PLAIN = SCRIPTS["plain"]


@pytest.mark.parametrize(
    ("name", "seconds", "seen"),
    [
        ("plain", 7.9, ("Processing", False, True, 0)),
        ("plain", 8.0, ("Complete", False, False, 4711)),
        ("late status", 8.0, ("Processing", False, False, 4711)),
        ("late rows", 29.0, ("Complete", False, False, None)),
        ("late rows", 30.0, ("Complete", False, False, 4711)),
        ("wrong hints", 7.0, ("Processing", True, False, 0)),
        ("wrong hints", 17.0, ("Processing", True, True, 0)),
        ("wrong hints", 100.0, ("Processing", True, False, 4711)),
        ("forgotten", 21.0, ("Processing", False, False, 0)),
        ("never ends", 86400.0, ("Processing", False, True, 0)),
    ],
)
def test_a_script_says_what_is_seen_when(
    name: str, seconds: float, seen: tuple[str, bool, bool, int | None]
) -> None:
    now = SCRIPTS[name].at(seconds)
    assert (now.status, now.hint, now.is_running, now.rows) == seen


def test_a_query_names_its_script_in_its_first_line() -> None:
    assert script_of("-- plays: broken\nSELECT 1") is SCRIPTS["broken"]
    assert script_of("SELECT 1 -- plays: broken") is SCRIPTS["broken"]
    assert script_of("SELECT 1\n-- plays: broken") is PLAIN
    assert script_of("-- plays: nothing like it") is PLAIN


async def test_a_query_is_started_asked_for_counted_and_removed() -> None:
    async with FakeWarehouse(speed=1000) as fake:
        client = Warehouse(fake.url)
        task = await client.start("run-1", "SELECT 1 AS a WHERE 1 < 2 -- plays: no rows")
        assert [(query.run, query.task) for query in fake.queries] == [("run-1", task)]
        await asyncio.sleep(0.01)
        assert await client.status(task) == Status("complete", "", hint=False)
        assert await client.count("run-1") == 0
        assert not await client.is_running("run-1")
        await client.delete("run-1")
        assert fake.deleted["run-1"] == 1


async def test_a_table_that_cannot_be_asked_is_no_number_of_rows() -> None:
    async with FakeWarehouse() as fake:
        client = Warehouse(fake.url)
        await client.start("run-1", "-- plays: never there")
        assert await client.count("run-1") is None
        await client.delete("run-of-nobody")


async def test_a_reported_error_is_part_of_the_status() -> None:
    async with FakeWarehouse(speed=1000) as fake:
        client = Warehouse(fake.url)
        task = await client.start("run-1", "-- plays: broken")
        await asyncio.sleep(0.01)
        assert await client.status(task) == Status("error", "division by zero in line 3", hint=True)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("error", "500 Internal Server Error"),
        ("cut", "Server disconnected"),
        ("slow", "TimeoutError"),
        ("unauthorized", "401 Unauthorized"),
    ],
)
async def test_trouble_says_nothing_about_the_query(
    trouble: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B10"""
    script = Script("", troubles=((0, NEVER, trouble),))  # type: ignore[arg-type]
    monkeypatch.setitem(SCRIPTS, "trouble", script)
    async with FakeWarehouse(late=0.3) as fake:
        client = Warehouse(fake.url)
        task = await client.start("run-1", "-- plays: trouble")
        if trouble == "slow":
            client = Warehouse(fake.url, patience=0.2)
        with pytest.raises(Unreachable, match=said):
            await client.status(task)


async def test_a_token_that_is_refused_is_asked_for_anew() -> None:
    async with FakeWarehouse() as fake:
        client = Warehouse(fake.url)
        task = await client.start("run-1", "SELECT 1")
        fake.revoke_tokens()
        assert (await client.status(task)).word == "processing"


async def test_a_warehouse_that_is_away_is_unreachable() -> None:
    async with FakeWarehouse() as fake:
        client = Warehouse(fake.url)
    with pytest.raises(Unreachable, match="Cannot connect"):
        await client.count("run-1")


async def test_a_fault_is_no_task() -> None:
    async with FakeWarehouse() as fake:
        with pytest.raises(Unreachable, match="500"):
            await Warehouse(fake.url).status("task-of-nobody")
