"""What a heartbeat asks about queues when Postgres is slow: as much as it can, of all in turn."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import StatementAborted
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.policy.lookback import Lookback
from hybrid_runner.telemetry.tracing.tracing import Tracing
from hybrid_runner.worker.liveness.questions import Questions
from hybrid_runner.worker.run.executor import Executor
from hybrid_runner.worker.run.payloads import Payloads
from hybrid_runner.worker.run.pools import HandlerPools
from hybrid_runner.worker.run.rows import Rows
from hybrid_runner.worker.waits.taker import SignalTaker
from tests.support.quiet_port import QuietPort

NAMES = [f"queue-{number:03}" for number in range(300)]


class SlowSession:
    """A heartbeat's session, in which looking back over everything takes too long."""

    def __init__(self, aborted: timedelta | None = None) -> None:
        self.asked: list[str] = []
        self.lookbacks: list[timedelta] = []
        self._aborted = aborted

    async def fetch(self, _query: str, /, *args: Any) -> Any:
        queues, lookback = args
        self.asked += queues
        self.lookbacks.append(lookback)
        await asyncio.sleep(0.02)
        if lookback == self._aborted:
            raise StatementAborted("canceling statement due to statement timeout")
        return []


def questions(session: SlowSession, queues: list[str], patience: float) -> Questions:
    port = QuietPort()
    pools = HandlerPools(threads=1, processes=1, port=port)
    payloads = Payloads(session, 1 << 20)
    rows, signals = Rows(lambda _: session, lambda _: None), SignalTaker(session)
    executor = Executor(
        Registry(), pools, lambda _: None, port, Tracing(str), payloads, rows, signals
    )
    return Questions(session, queues, timedelta(seconds=30), executor, [], patience)


async def test_what_there_was_no_time_for_is_asked_first_the_next_time() -> None:
    session = SlowSession()
    asking = questions(session, NAMES, patience=0.03)
    for _ in range(10):  # one hundred queues each time
        await asking.ask_queues()
    assert set(session.asked) == set(NAMES)


async def test_after_questions_that_took_too_long_less_is_asked() -> None:
    """Else no queue of the worker would get an answer while vacuum is held up."""
    session = SlowSession(aborted=Lookback.ALL.value)
    asking = questions(session, NAMES[:1], patience=10)
    for _ in range(3):
        await asking.ask_queues()
    assert session.lookbacks == [Lookback.ALL.value] * 2 + [Lookback.RECENT.value]
