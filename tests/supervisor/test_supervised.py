"""The child's end of a supervised process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest

from hybrid_runner.resilience import AdaptiveScheduler
from hybrid_runner.supervisor.supervised import ChildOrders, Supervised
from hybrid_runner.worker.report.status import WorkerStatus
from tests.support.moved_clock import MovedClock, turn

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


async def test_a_child_reports_from_its_first_moment_on_and_no_more_after_its_end(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent takes who says nothing for hung."""
    supervised, parents = ends
    clock = MovedClock()
    supervised._loops = AdaptiveScheduler(clock=clock)
    monkeypatch.setattr(supervised, "_status", lambda: None)
    monkeypatch.setattr(supervised, "_watch", lambda *_: None)  # it would end this process
    monkeypatch.setattr("hybrid_runner.supervisor.supervised._ignore_signals", lambda: None)
    async with supervised.reporting(timedelta(0)):
        await clock.forward(0)
        assert b"health" in await asyncio.get_running_loop().sock_recv(parents, 65536)
        assert supervised._loops.trigger("reports")
        await turn()
    assert not supervised._loops.trigger("reports")


async def test_a_parent_that_reads_no_more_is_no_failure_of_the_reports(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it has gone is found out by another road."""
    supervised, parents = ends
    monkeypatch.setattr(supervised, "_status", lambda: None)
    parents.close()
    supervised._loops.schedule("reports", supervised._report, 1, at_once=True)
    supervised.show(no_status)
    await turn()
    state = supervised._loops.backoff_state("reports")
    assert state is not None
    assert (state.failures, state.last_ok_at is None) == (0, False)
    await supervised._loops.close()
