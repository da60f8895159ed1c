"""A round: the job that polls what is due at one host."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import BaseModel

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import StaleClaim
from hybrid_runner.handlers.job import Job
from hybrid_runner.model.monitors import (
    Decision,
    Event,
    Polled,
    Recorded,
    Service,
    Stopped,
    Subscription,
    Taken,
    host_key,
)
from hybrid_runner.model.outcomes import Repeat
from hybrid_runner.monitors.poller import Poller
from hybrid_runner.policy.monitor_phases import Spread, next_round, spread, was_away
from hybrid_runner.policy.monitors import (
    PollRules,
    decide,
    missed,
    needs_dependencies,
    put_off,
    stop,
    try_breaker,
)
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.monitor_counters import MonitorCounters

log = logging.getLogger("hybrid_runner.monitors")

MOST: Final = 200
"""Services that a round takes at a time."""
_LONGEST: Final = 60.0
"""Seconds in which a run begins polls."""
_EVERY: Final = 5.0
"""Seconds after which what was found so far is stored, while others are still polled."""
_IDLE: Final = timedelta(minutes=10)
"""So long a host without active services keeps its job."""


class Memory(BaseModel):
    """What a round tells the next one."""

    has_spread: bool = False


@dataclass(frozen=True, slots=True)
class Rounds:
    """What all rounds of a process have in common."""

    poller: Poller
    rules: PollRules
    subscriptions: Sequence[Subscription]
    counters: MonitorCounters
    keeps_polls: bool


class Round:
    """One run of it. Whatever a service answers or an editor has stored, it goes on; whatever it
    writes names its claim, so that a round that was taken away writes nothing.
    """

    def __init__(self, rounds: Rounds, on: Fetches, host: str, job: Job[Memory]) -> None:
        self._rounds = rounds
        self._on = on
        self._host = host
        self._job = job
        self._began = time.monotonic()
        self._until = self._began + _LONGEST
        self._is_away: bool | None = None
        self._now = datetime.min.replace(tzinfo=UTC)
        self._now_at = 0.0

    async def run(self) -> Repeat | None:
        """Poll what is due, a few hundred at a time, for a minute at most."""
        async with self._rounds.poller.open():
            while True:
                taken = await self._take()
                is_last = len(taken.services) < MOST or time.monotonic() >= self._until
                recorded = await self._work(taken, is_last=is_last)
                if is_last:
                    return self._again(recorded.next_due)

    async def _take(self) -> Taken:
        taken = await monitor_calls.take_round(
            self._on, self._host, self._job.id, self._job.claim, MOST
        )
        if taken is None:
            raise self._stale()
        self._now, self._now_at = taken.now, time.monotonic()
        if self._is_away is None:
            self._is_away = self._find_out(taken)
            self._job.data.has_spread = self._is_away
        return taken

    def _find_out(self, taken: Taken) -> bool:
        """Whether nobody has polled this host for a while."""
        late = taken.now - self._job.run_at
        if self._job.attempt > 1:  # it was made due when it was put back
            dues = [each.standing.due_at for each in taken.services if each.standing is not None]
            late = taken.now - min(dues, default=taken.now)
        return was_away(late, self._rounds.rules.tick, has_spread=self._job.data.has_spread)

    async def _work(self, taken: Taken, *, is_last: bool) -> Recorded:
        chosen: Spread = spread(
            taken.services, taken.now, was_away=bool(self._is_away), tick=self._rounds.rules.tick
        )
        decisions = [put_off(service, due_at) for service, due_at in chosen.later]
        stopped = [(each, stop(each)) for each in taken.stopped]
        going, probes = list[Service](), list[int]()
        for service in chosen.now:
            tried = try_breaker(service, taken.now, self._rounds.rules)
            if tried.put_off is not None:
                decisions.append(tried.put_off)
                continue
            going.append(service)
            if tried.is_probe:
                probes.append(service.id)
        if probes:
            going = await self._begin_probes(going, probes)
        if not going:
            return await self._record(decisions, stopped, is_last=is_last)
        if decisions or stopped:
            await self._record(decisions, stopped, is_last=False)
        return await self._poll(going, is_last=is_last)

    async def _begin_probes(self, going: Sequence[Service], probes: Sequence[int]) -> list[Service]:
        """Write down that they are on their way: should this round die now, nobody sends others."""
        breaker = self._rounds.rules.breaker
        begun = await monitor_calls.begin_probes(
            self._on,
            self._job.id,
            self._job.claim,
            probes,
            self._now + parse_duration(breaker.cooldown),
        )
        if begun is None:
            raise self._stale()
        return [each for each in going if each.id not in probes or each.id in begun]

    async def _poll(self, going: Sequence[Service], *, is_last: bool) -> Recorded:
        found: list[tuple[Service, Polled, datetime]] = []

        def note(service: Service, polled: Polled) -> None:
            found.append((service, polled, self._at()))

        polling = asyncio.create_task(
            self._rounds.poller.poll(self._host, going, self._now, self._until, note)
        )
        try:
            while not (await asyncio.wait([polling], timeout=_EVERY))[0]:
                some, found[:] = [*found], []
                if some:
                    await self._record(await self._decide(some), [], is_last=False)
            polling.result()
        finally:
            if not polling.done():
                polling.cancel()
                await asyncio.wait([polling])
        return await self._record(await self._decide(found), [], is_last=is_last)

    async def _decide(self, found: Sequence[tuple[Service, Polled, datetime]]) -> list[Decision]:
        wanted = [each.id for each, polled, _ in found if needs_dependencies(each, polled)]
        stored = await monitor_calls.dependencies_of(self._on, wanted) if wanted else {}
        decisions = list[Decision]()
        for service, polled, at in found:
            if polled.is_local and self._rounds.poller.is_cut_off:
                self._rounds.counters.count_poll("missed")
                decisions.append(missed(service, polled, at))
                continue
            self._rounds.counters.count_poll(polled.failure or "ok")
            decisions.append(
                decide(
                    service,
                    polled,
                    stored.get(service.id),
                    at,
                    self._rounds.rules,
                    chance=random.random(),  # no secret
                )
            )
        return decisions

    async def _record(
        self,
        decisions: Sequence[Decision],
        stopped: Sequence[tuple[Stopped, Sequence[Event]]],
        *,
        is_last: bool,
    ) -> Recorded:
        recorded = await monitor_calls.record_round(
            self._on,
            self._host,
            self._job.id,
            self._job.claim,
            decisions,
            stopped,
            self._rounds.subscriptions,
            keeps_polls=self._rounds.keeps_polls,
            last=is_last,
        )
        if recorded is None:
            raise self._stale()
        for events in (*(each.events for each in decisions), *(events for _, events in stopped)):
            for event in events:
                self._tell(event)
        return recorded

    def _tell(self, event: Event) -> None:
        self._rounds.counters.count_event(event.kind)
        if event.kind in ("service:down", "service:up", "circuit:open", "circuit:close"):
            name = event.payload["serviceName"]
            log.info(
                "%s: %s%s",
                name,
                event.kind,
                f" ({event.suppressed}, nobody is told)" if event.suppressed else "",
                extra=log_event("monitors.service", service=name, event=event.kind),
            )

    def _again(self, next_due: timedelta | None) -> Repeat | None:
        key = host_key(self._host)
        if next_due is None:  # nothing is to be polled here any more
            return None if self._job.timed_out else Repeat(_IDLE, wake_on=key)
        return Repeat(
            next_round(self._host, self._at(), next_due, self._rounds.rules.tick), wake_on=key
        )

    def _at(self) -> datetime:
        """Now, by Postgres's clock."""
        return self._now + timedelta(seconds=time.monotonic() - self._now_at)

    def _stale(self) -> StaleClaim:
        return StaleClaim(f"the round of {self._host} is another worker's by now")
