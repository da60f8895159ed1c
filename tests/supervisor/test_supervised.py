"""The child's end of a supervised process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from hybrid_runner.resilience import AdaptiveScheduler
from hybrid_runner.supervisor.supervised import ChildOrders, Supervised
from hybrid_runner.worker.report.status import WorkerStatus
from tests.support.moved_clock import MovedClock

Ends = tuple[Supervised, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A child's connection, by a clock that stands still, and the parent's end of it."""
    parents, childs = socket.socketpair()
    childs.setblocking(False)
    parents.setblocking(False)
    supervised = Supervised(ChildOrders(childs.detach(), None, None))
    supervised._loops = AdaptiveScheduler(clock=MovedClock())
    with parents, supervised._socket:
        yield supervised, parents


def no_status() -> WorkerStatus:
    raise NotImplementedError


async def test_a_worker_that_has_started_is_reported_at_once(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised, parents = ends
    monkeypatch.setattr(supervised, "_status", lambda: None)
    supervised._loops.schedule("reports", supervised._report, 1)
    supervised.show(no_status)
    assert b"health" in await asyncio.get_running_loop().sock_recv(parents, 65536)
    await supervised._loops.close()


async def test_an_end_that_meets_news_is_an_end(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised, _ = ends
    monkeypatch.setattr(supervised, "_status", lambda: None)
    supervised._loops.schedule("reports", supervised._report, 1, at_once=True)
    supervised.show(no_status)
    await supervised._loops.close(grace=0)
    assert not supervised._loops.trigger("reports")
