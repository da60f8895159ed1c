"""What a worker asks once it has said that it lives: what it may have missed, and who else lives.
Runs in the heartbeat's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta

from hybrid_runner.errors import RunnerError, StatementAborted
from hybrid_runner.model.news import HeartbeatNews, LanesRead
from hybrid_runner.policy.lookback import Lookbacks
from hybrid_runner.storage import heartbeat_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.identity import Name
from hybrid_runner.worker.liveness.fleet import Fleet
from hybrid_runner.worker.run.executor import Executor

log = logging.getLogger("hybrid_runner.worker")

_QUEUES = 100
"""So many queues are asked about in one statement, each of which locks a bell or two."""


class Questions:
    """Asks after each heartbeat. What cannot be answered now, because of a lock on the table of
    jobs for example, is asked with the next one: the worker lives all the same.
    """

    def __init__(
        self,
        connection: Fetches,
        queues: Sequence[str],
        timeout_grace: timedelta,
        executor: Executor,
        duties: Sequence[str],
        patience: float,
    ) -> None:
        self._connection = connection
        self._queues = queues
        self._timeout_grace = timeout_grace
        self._executor = executor
        self._duties = duties
        self._patience = patience
        self._lookbacks = Lookbacks()
        self._next = 0
        """The place of the queue that is asked about next."""
        self._failing: set[str] = set()

    async def ask_news(self, name: Name, fleet: Fleet) -> list[HeartbeatNews] | None:
        """About this worker's jobs, the duties and the other workers; None: no answer."""
        try:
            news = await heartbeat_calls.ask_news(
                self._connection,
                *name,
                self._executor.claims,
                self._timeout_grace,
                self._duties,
                fleet.shortest_lease,
            )
        except RunnerError as error:
            self._failed("what it may have missed", error)
            return None
        self._answered("what it may have missed")
        return news

    async def ask_queues(self) -> list[HeartbeatNews]:
        """About the queues, as far as they answer in time; next time those first that this one had
        no time for.
        """
        news: list[HeartbeatNews] = []
        began = time.monotonic()
        try:
            for _ in range(0, len(self._queues), _QUEUES):
                if time.monotonic() - began > self._patience / 2:
                    break
                start, end = self._next, self._next + _QUEUES
                self._next = end if end < len(self._queues) else 0
                news += await self._ask_some(self._queues[start:end])
        except RunnerError as error:
            self._failed("about its queues", error)
        else:
            self._answered("about its queues")
        return news

    async def _ask_some(self, queues: Sequence[str]) -> list[HeartbeatNews]:
        began = time.monotonic()
        lookback = self._lookbacks.choose(began)
        try:
            news = await heartbeat_calls.ask_queues(self._connection, queues, lookback.value)
        except StatementAborted:  # so dear that there is no answer which says so
            now = time.monotonic()
            self._lookbacks.took(lookback, len(queues), now - began, now)
            raise
        for one in news:
            if isinstance(one, LanesRead):
                took = one.took.total_seconds()
                self._lookbacks.took(lookback, len(queues), took, time.monotonic())
        return news

    def _failed(self, what: str, error: RunnerError) -> None:
        """Once, not at each heartbeat: a lock that lasts is no news."""
        if what not in self._failing:
            self._failing.add(what)
            log.warning(
                "the heartbeat cannot ask %s: %s; asking again with each heartbeat",
                what,
                error,
                extra=log_event("heartbeat.question_failed"),
            )

    def _answered(self, what: str) -> None:
        if what in self._failing:
            self._failing.remove(what)
            log.info(
                "the heartbeat can ask %s again",
                what,
                extra=log_event("heartbeat.question_answered"),
            )
