"""What an application does while Postgres does not answer."""

from __future__ import annotations

import pytest

from hybrid_runner.client import outage
from hybrid_runner.client.outage import outlast
from hybrid_runner.errors import DatabaseError, DatabaseUnavailable


class Passing:
    """Time that passes while somebody sleeps, and no other."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.calls = 0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def fail(self) -> None:
        self.calls += 1
        raise DatabaseUnavailable("nobody answers")


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    passing = Passing()
    monkeypatch.setattr(outage, "time", passing)
    monkeypatch.setattr(outage, "asyncio", passing)
    return passing


@pytest.mark.parametrize(
    ("wait", "calls", "seconds"), [(None, 1, 0), (0, 1, 0), (0.9, 1, 0), (3, 3, 3), ("30s", 6, 25)]
)
async def test_it_is_tried_again_for_so_long_and_never_longer(
    passing: Passing, wait: float | str | None, calls: int, seconds: float
) -> None:
    """A9: after 1, 2, 4, 8 and then every 10 s"""
    with pytest.raises(DatabaseUnavailable):
        await outlast(passing.fail, wait)
    assert (passing.calls, passing.now - 1000) == (calls, seconds)


async def test_what_will_not_help_is_not_tried_again(passing: Passing) -> None:
    async def refuse() -> None:
        passing.calls += 1
        raise DatabaseError("no right")

    with pytest.raises(DatabaseError):
        await outlast(refuse, "1h")
    assert passing.calls == 1


async def test_what_works_again_is_returned(passing: Passing) -> None:
    async def call() -> str:
        if passing.now < 1005:
            await passing.fail()
        return "there"

    assert await outlast(call, "1m") == "there"
    assert passing.calls == 3
