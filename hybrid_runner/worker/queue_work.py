"""Everything one worker has for one queue, wired together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, assert_never

from hybrid_runner.happenings import Search
from hybrid_runner.messages import (
    CancelAsked,
    HelpWanted,
    JobDue,
    JobLater,
    QueueMessage,
    QueueResumed,
    RingPassedOn,
    WorkerCame,
    WorkerLeft,
)
from hybrid_runner.models import Claim, Taken
from hybrid_runner.news import JobsOverdue, MuteExpired, NextDue, QueueNews
from hybrid_runner.policy.doorbell import Mode, Reason
from hybrid_runner.policy.pace import Pace
from hybrid_runner.policy.ranking import AT_ONCE, EVERYBODY, Part, part, place
from hybrid_runner.settings import Settings
from hybrid_runner.storage.statements import Lanes
from hybrid_runner.worker.bell import Bell
from hybrid_runner.worker.claimer import Claimer
from hybrid_runner.worker.missed import MissedRings
from hybrid_runner.worker.poller import Poller
from hybrid_runner.worker.slots import Slots
from hybrid_runner.worker.status import QueueStatus
from hybrid_runner.worker.timers import Timer
from hybrid_runner.worker.wake import Wake

_LOOK_LATER = 0.025


class QueueWork:
    """Wake ← listener, timer, poller, free slots; wake → claimer → executor."""

    def __init__(
        self,
        queue: str,
        slots: int,
        settings: Settings,
        *,
        worker_id: Callable[[], str],
        kinds: str,
        open_bell: Callable[[str], None],
        bell: Bell,
        hearing: Callable[[], bool],
        send: Callable[[str, QueueMessage], None],
        cancel: Callable[[int], None],
        beat: Callable[[], None],
        claim: Callable[[str, int, Lanes], Awaitable[Taken]],
        session: Callable[[], int],
        release_lost: Callable[[str], Awaitable[dict[int, bool]]],
        next_due: Callable[[str], Awaitable[timedelta | None]],
        start: Callable[[list[Claim], Slots], None],
        searched: Callable[[Search], None],
        find_unannounced: Callable[[str, Sequence[int]], Awaitable[tuple[bool, int]]],
        soon: Callable[[Coroutine[Any, Any, None]], None],
        missed: Callable[[str, int], None],
        room: Callable[[], int],
    ) -> None:
        self.queue = queue
        self.wake = Wake()
        self.slots = Slots(slots)
        self.timer = Timer(self.wake, furthest=settings.hybrid_poll_cap)
        self.poller = Poller(
            self.wake,
            deaf=Pace(settings.poll_base, settings.poll_cap, settings.poll_factor),
            hearing=Pace(settings.hybrid_poll_base, settings.hybrid_poll_cap, settings.poll_factor),
        )
        self.claimer = Claimer(
            queue, settings=settings, wake=self.wake, slots=self.slots, bell=bell, hearing=hearing, claim=claim,
            session=session, release_lost=release_lost, next_due=next_due, start=start, room=room,
            mixed=lambda: self.mixed, unmute=lambda: self._open(queue),
            looked=self.poller.looked, searched=self._on_search, set_timer=self.timer.set,
        )  # fmt: skip
        self.missed = MissedRings(lambda ids: find_unannounced(queue, ids), hearing, soon, lambda count: missed(queue, count))
        self._searched = searched
        self.members: dict[str, str] = {}
        """The live workers of this queue as the last heartbeat knew them, and the numbers of the kinds that they know."""
        self.mixed = True
        """Some know other kinds than we do, or may: then nobody may speak for the others, by a mute or by looking for them."""
        self._in_doubt_since = 0.0
        self._rings = 0
        self._kinds = kinds
        self._open = open_bell
        self._worker_id = worker_id
        self._send = send
        self._cancel = cancel
        self._beat = beat

    def heard(self, message: QueueMessage, ringer: int) -> None:
        """A message on the queue's channel; whoever sent it, the worst it can do is cause a look."""
        self._rings += 1
        match message:
            case JobDue() | JobLater():
                self.missed.heard(insert=True)
                self._rung(_reason(later=isinstance(message, JobLater)), ringer)
            case HelpWanted() | QueueResumed():
                self.missed.heard(insert=isinstance(message, QueueResumed))
                self.wake.up(Reason.HELP)
            case RingPassedOn(later, passed_by, position):
                self.missed.heard(insert=True)
                if place(passed_by, self._worker_id(), self.members) == position:
                    self._look_or_pass_on(_reason(later=later), passed_by, position)
            case CancelAsked(job_id):
                self._cancel(job_id)
            case WorkerCame(worker_id):
                self._on_newcomer(worker_id)
            case WorkerLeft(worker_id):
                if worker_id != self._worker_id():
                    self.members.pop(worker_id, None)
            case _:
                assert_never(message)

    def _on_newcomer(self, worker_id: str) -> None:
        if worker_id not in self.members:
            if worker_id != self._worker_id():  # our own comes back to us
                self._doubt()
            self._beat()  # only now: a heartbeat from before the doubt does not end it

    def told(self, news: QueueNews) -> None:
        """Do what the heartbeat's answer asks for."""
        match news:
            case MuteExpired():
                self.wake.up(Reason.EXPIRED)
            case JobsOverdue():
                if self.claimer.mode is Mode.ASLEEP:
                    self.wake.up(Reason.SWEEP)
            case NextDue():
                self.timer.advance(news.delay)
            case _:
                assert_never(news)

    def _on_search(self, search: Search) -> None:
        if search.claims and search.way == Reason.SWEEP.way:
            alone = self.members.keys() <= {self._worker_id()}
            self.missed.poll_found(search.claims, self.claimer.asleep_since, mixed=self.mixed, alone=alone)
        news = self.missed.news()
        self._searched(search._replace(missed=news) if news else search)

    def _rung(self, reason: Reason, ringer: int) -> None:
        position = place(ringer, self._worker_id(), self.members)
        match Part.LOOK if self.mixed else part(position, len(self.members)):
            case Part.LOOK:
                self._look_or_pass_on(reason, ringer, position)
            case Part.LOOK_LATER:
                asyncio.get_running_loop().call_later(_LOOK_LATER, self.wake.up, reason)
            case Part.NOTHING:
                pass

    def _doubt(self) -> None:
        """Somebody new, whose kinds the next heartbeat brings: until then every ring is for all, and none is spared."""
        self._in_doubt_since = time.monotonic()
        self._set_mixed(mixed=True)

    def met(self, members: dict[str, str], asked_at: float) -> None:
        """What a heartbeat of that time knew of the queue's workers."""
        self.members = members
        is_old = asked_at <= self._in_doubt_since
        self._set_mixed(mixed=is_old or any(kinds != self._kinds for kinds in members.values()))

    def _set_mixed(self, *, mixed: bool) -> None:
        if mixed and not self.mixed and self.claimer.mode in (Mode.AWAKE, Mode.FULL):
            self._open(self.queue)  # what our mute kept quiet may be for somebody else
        self.mixed = mixed

    def _look_or_pass_on(self, reason: Reason, ringer: int, position: int) -> None:
        """A full worker cannot take it: the next in order can, if there are any that this ring is not for anyway."""
        if self.claimer.mode is Mode.FULL and len(self.members) > EVERYBODY and not self.mixed:
            if position + AT_ONCE < len(self.members):
                self._send(self.queue, RingPassedOn(reason is Reason.LATER, ringer, position + AT_ONCE))
        else:
            self.wake.up(reason)

    def status(self) -> QueueStatus:
        """A snapshot."""
        seen, missed = self.claimer.seen, self.missed
        return QueueStatus(
            queue=self.queue, mode=self.claimer.mode.value, slots=self.slots.total, running=self.slots.taken, looks=seen.looks,
            empty_looks=seen.empty, sweeps=seen.sweeps, found=dict(seen.found), consecutive_errors=seen.consecutive_errors,
            polls=self.poller.polls, empty_polls=self.poller.empty_polls, next_poll=self.poller.pause, errors=seen.errors,
            rings=self._rings, overdue=self.poller.overdue, busy=self.claimer.busy, missed=missed.count, missed_ago=missed.ago,
            last_minute=seen.lately.seen(time.monotonic()),
        )  # fmt: skip


def _reason(*, later: bool) -> Reason:
    return Reason.LATER if later else Reason.RING
