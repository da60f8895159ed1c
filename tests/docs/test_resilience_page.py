"""docs/resilience.md: its Python is one module, and what it says can be run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from types import ModuleType

import pytest

from hybrid_runner import resilience
from hybrid_runner.resilience import BreakerState
from tests.docs.blocks import ROOT, blocks
from tests.docs.test_pages import load
from tests.support.moved_clock import MovedClock

PAGE = (ROOT / "docs" / "resilience.md").read_text(encoding="utf-8")


@pytest.fixture
def page() -> Iterator[ModuleType]:
    yield load(
        "resilience_page", "".join(block.text for block in blocks("docs/resilience.md", "python"))
    )
    del sys.modules["resilience_page"]


async def test_the_loops_of_the_page_run(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = MovedClock()

    class Moved(resilience.AdaptiveScheduler):
        async def __aexit__(self, *error: object) -> None:
            await clock.forward(100)
            await super().__aexit__(*error)

    monkeypatch.setattr(page, "AdaptiveScheduler", partial(Moved, clock=clock, chance=lambda: 0.5))
    await page.run_shop()
    assert page.stock == {"paper": 12}
    await page.watch_orders()
    assert "scheduled orders 0" in capsys.readouterr().out


async def test_the_breaker_of_the_page_guards(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    opened = BreakerState("open", 10, now)
    assert await page.guarded(opened) == opened
    assert page.plan(opened) == now + timedelta(minutes=5)
    assert await page.guarded(BreakerState("open", 10, now - timedelta(hours=1))) == BreakerState()

    async def refuse() -> None:
        raise OSError("away")

    monkeypatch.setattr(page, "refresh_stock", refuse)
    assert await page.guarded(BreakerState()) == BreakerState("closed", 1)


async def test_the_limits_and_the_shared_call_of_the_page_work(page: ModuleType) -> None:
    assert await page.fetch("orders") == "the answer of orders"
    assert await page.fetch_or_leave("orders") == "the answer of orders"
    assert await page.answer_of("http://orders.internal") == "the answer of orders.internal"
    assert (page.limits.hosts, page.coalescing.made) == (0, 1)
    places = [page.limits.try_place("orders") for _ in range(5)]
    assert all(places)
    assert await page.fetch_or_leave("orders") is None


def test_the_page_has_every_public_part() -> None:
    kept = {"Timer", "Place"}  # what calls return
    assert [name for name in resilience.__all__ if name not in kept and name not in PAGE] == [
        "BackoffState"
    ], "that one is described by its fields"
    for name in ("failures", "multiplier", "next_at", "last_ok_at"):
        assert f"`{name}`" in PAGE
