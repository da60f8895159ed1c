"""A round: the job that polls what is due at one host."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import StaleClaim
from hybrid_runner.handlers.job import Job
from hybrid_runner.model.monitors import (
    Decision,
    Dependency,
    Event,
    Known,
    Polled,
    Recorded,
    Service,
    Stopped,
    Subscription,
    Taken,
    Unchanged,
    host_key,
)
from hybrid_runner.model.outcomes import Repeat
from hybrid_runner.monitors.memory import Memory, as_it_is, known_after, note
from hybrid_runner.monitors.poller import Poller
from hybrid_runner.policy.monitor_rounds import SHORTEST, next_round, place_of
from hybrid_runner.policy.monitors import (
    PollRules,
    decide,
    missed,
    needs_dependencies,
    put_off,
    stop,
    try_breaker,
    unchanged,
)
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.monitor_counters import MonitorCounters

log = logging.getLogger("hybrid_runner.monitors")

MOST: Final = 200
"""Services that a round takes at a time."""
_MOST_STOPPED: Final = 1000
_LONGEST: Final = 60.0
"""Seconds in which a run begins polls."""
_EVERY: Final = 5.0
"""Seconds after which what was found so far is stored, while others are still polled. A round in
which only time-outs came in this time hangs: it goes on while at most half of the slots hang.
"""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What all rounds of a process have in common."""

    poller: Poller
    rules: PollRules
    subscriptions: Sequence[Subscription]
    counters: MonitorCounters
    keeps_polls: bool
    memory: Memory = field(default_factory=Memory)
    hanging: set[int] = field(default_factory=set)
    """Job ids of rounds that hang and go on."""

    def may_hang(self, job_id: int, slots: int) -> bool:
        """Return whether one more round that hangs may go on: at most half of the slots, so that
        hosts that answer are polled beside them, and one in any case.
        """
        self.hanging.add(job_id)
        return len(self.hanging) <= max(1, slots // 2)

    @property
    def tells_polls(self) -> bool:
        """Whether each good poll is to be an event."""
        return self.keeps_polls or any(each.event == "poll:complete" for each in self.subscriptions)


class _Found(NamedTuple):
    """What a poll of a service found, and when it ended."""

    service: Service
    polled: Polled
    at: datetime


@dataclass(frozen=True, slots=True)
class _Decided:
    """What is to be stored of polls."""

    decisions: list[Decision] = field(default_factory=list)
    unchanged: list[Unchanged] = field(default_factory=list)


class Round:
    """One run of it. Whatever a service answers or an editor has stored, it goes on; whatever it
    writes names its claim, so that a round that was taken away writes nothing.
    """

    def __init__(self, rounds: Rounds, on: Fetches, host: str, job: Job, slots: int) -> None:
        """`slots`: of the worker, for rounds."""
        self._rounds = rounds
        self._slots = slots
        self._on = on
        self._host = host
        self._job = job
        self._place = place_of(job.id)
        self._began = time.monotonic()
        self._until = self._began + _LONGEST
        self._now = datetime.min.replace(tzinfo=UTC)
        self._now_at = 0.0
        self._keeps_polls = rounds.keeps_polls
        self._known: Mapping[int, Known] = {}
        """Of what was taken: those that are as this process has left them."""
        self._taken: Mapping[int, Service] = {}

    async def run(self) -> Repeat | None:
        """Poll what is due, a few hundred at a time, for a minute at most. None: nothing is to be
        polled here any more.
        """
        while True:
            taken = await self._take()
            has_more = taken.has_more or len(taken.stopped) >= _MOST_STOPPED
            is_last = not has_more or time.monotonic() >= self._until
            recorded = await self._work(taken, is_last=is_last)
            if is_last:
                return self._again(recorded.next_due)

    async def _take(self) -> Taken:
        memory = self._rounds.memory
        taken = await monitor_calls.take_round(
            self._on, self._host, self._job.id, self._job.claim, MOST, memory.of(self._host)
        )
        if taken is None:
            raise self._stale()
        self._known = taken.recognised
        self._taken = {each.id: each for each in taken.services}
        memory.forget(
            self._host, [each.id for each in taken.services if each.id not in self._known]
        )
        self._now, self._now_at = taken.now, time.monotonic()
        self._keeps_polls = self._rounds.keeps_polls or taken.polls_are_read
        if taken.polls_are_read or self._rounds.tells_polls:
            self._known = {}  # of each poll there is something to tell
        return taken

    async def _work(self, taken: Taken, *, is_last: bool) -> Recorded:
        stopped = [(each, stop(each)) for each in taken.stopped]
        resting = _Decided()
        going, probes = list[Service](), list[int]()
        for service in taken.services:
            tried = try_breaker(service, taken.now, self._rounds.rules)
            if tried.put_off is not None:
                resting.decisions.append(tried.put_off)
                continue
            going.append(tried.service)
            if tried.is_probe:
                probes.append(service.id)
        if probes:
            going = await self._begin_probes(going, probes)
        if not going:
            return await self._record(resting, stopped, is_last=is_last)
        if resting.decisions or stopped:
            await self._record(resting, stopped, is_last=False)
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
        found = list[_Found]()
        left = {each.id: each for each in going}

        def take_down(service: Service, polled: Polled) -> None:
            del left[service.id]
            found.append(_Found(service, polled, self._at()))

        poll = self._rounds.poller.poll
        polling = asyncio.create_task(
            poll(self._host, going, self._now, self._until, take_down, self._known)
        )
        try:
            while not (await asyncio.wait([polling], timeout=_EVERY))[0]:
                some, found[:] = [*found], []
                if some:
                    await self._record(await self._decide(some), [], is_last=False)
                is_hanging = all(each.polled.failure == "timeout" for each in some)
                if is_hanging and not self._rounds.may_hang(self._job.id, self._slots):
                    break
        finally:
            self._rounds.hanging.discard(self._job.id)
            if not polling.done():
                polling.cancel()
                await asyncio.wait([polling])
        if not polling.cancelled():
            polling.result()
        for service in [*left.values()]:
            take_down(service, Polled(service.id, service.url, 0, is_put_off=True))
        return await self._record(await self._decide(found), [], is_last=is_last)

    async def _decide(self, found: Sequence[_Found]) -> _Decided:
        decided, others = _Decided(), list[_Found]()
        for each in found:
            known = self._known.get(each.service.id)
            same = None if known is None else self._unchanged(known, each)
            if same is not None:
                decided.unchanged.append(same)
            elif known is not None:
                others.append(each._replace(service=as_it_is(known)))
            else:
                others.append(each)
        wanted = [each.id for each, polled, _ in others if needs_dependencies(each, polled)]
        stored = await monitor_calls.dependencies_of(self._on, wanted) if wanted else {}
        decided.decisions.extend(
            self._decided(service, polled, stored.get(service.id), at)
            for service, polled, at in others
        )
        return decided

    def _unchanged(self, known: Known, found: _Found) -> Unchanged | None:
        return unchanged(known, found.polled, found.at, self._rounds.rules, self._place)

    def _decided(
        self,
        service: Service,
        polled: Polled,
        stored: Mapping[str, Dependency] | None,
        at: datetime,
    ) -> Decision:
        if polled.is_put_off or (polled.is_local and self._rounds.poller.is_cut_off):
            self._rounds.counters.count_poll("missed")
            return missed(service, polled, at, self._rounds.rules)
        self._rounds.counters.count_poll(polled.failure or "ok")
        chance = random.random()  # no secret
        try:
            return decide(
                service, polled, stored, at, self._rounds.rules, chance=chance, place=self._place
            )
        except Exception:  # one service must not hold up the others of its host
            log.exception(
                "%s: what its poll means cannot be decided; again after its interval",
                service.name,
                extra=log_event("monitors.undecided", service=service.name),
            )
            return put_off(service, at + service.every)

    async def _record(
        self,
        decided: _Decided,
        stopped: Sequence[tuple[Stopped, Sequence[Event]]],
        *,
        is_last: bool,
    ) -> Recorded:
        decisions = decided.decisions
        recorded = await monitor_calls.record_round(
            self._on,
            self._host,
            self._job.id,
            self._job.claim,
            decisions,
            stopped,
            self._rounds.subscriptions,
            keeps_polls=self._keeps_polls,
            last=is_last,
            unchanged=decided.unchanged,
        )
        if recorded is None:
            raise self._stale()
        self._remember(decided, recorded.version)
        for events in (*(each.events for each in decisions), *(events for _, events in stopped)):
            for event in events:
                self._tell(event)
        return recorded

    def _remember(self, decided: _Decided, version: int) -> None:
        memory, counters = self._rounds.memory, self._rounds.counters
        for same in decided.unchanged:
            note(self._known[same.service_id], same, version)
        counters.count_poll("ok", len(decided.unchanged))
        counters.count_event("poll:complete", len(decided.unchanged))
        memory.forget(self._host, [each.service_id for each in decided.decisions])
        known = (
            known_after(self._taken[each.service_id], each, version)
            for each in decided.decisions
            if each.service_id in self._taken
        )
        memory.keep(self._host, [each for each in known if each is not None])

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
        if next_due is None:
            return None
        if time.monotonic() >= self._until:  # it was stopped in the middle
            return Repeat(max(next_due, SHORTEST), wake_on=key)
        after = next_round(self._place, self._at(), next_due, self._rounds.rules.tick)
        return Repeat(after, wake_on=key)

    def _at(self) -> datetime:
        """Now, by Postgres's clock."""
        return self._now + timedelta(seconds=time.monotonic() - self._now_at)

    def _stale(self) -> StaleClaim:
        return StaleClaim(f"the round of {self._host} is another worker's by now")
