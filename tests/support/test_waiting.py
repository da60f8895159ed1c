"""A wait that ends in vain says what was awaited, and what there was instead."""

from __future__ import annotations

import asyncio

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import at_least, equals, until, until_fetched, wait_until


async def test_a_wait_ends_when_a_look_fits() -> None:
    looks = iter(range(10))
    assert await until(lambda: next(looks), at_least(3)) == 3


async def test_a_wait_in_vain_says_for_what_and_what_it_saw() -> None:
    numbers = [1, 2]
    with pytest.raises(AssertionError, match=r"(?s)len\(numbers\).*last seen: '2'"):
        await until(lambda: len(numbers), equals(3), patience=0.02)
    with pytest.raises(AssertionError, match=r"(?s)len\(numbers\).*last seen: '2'"):
        wait_until(lambda: len(numbers), equals(3), patience=0.02)


async def test_a_wait_for_a_query_in_vain_names_the_query(database: Connection) -> None:
    with pytest.raises(AssertionError, match=r"(?s)3 of SELECT 1 \+ 1.*last seen: '2'"):
        await until_fetched(database, "SELECT 1 + 1", 3, patience=0.05)


async def test_a_look_that_does_not_end_is_given_up() -> None:
    with pytest.raises(AssertionError, match="the first look did not end"):
        await until(asyncio.Event().wait, patience=0.02)


async def test_a_time_out_of_the_look_is_its_own_error() -> None:
    async def look() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await until(look)
