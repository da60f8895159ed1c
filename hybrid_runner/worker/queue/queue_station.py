"""One queue in one worker: receives the messages of its channel, and wakes its claimer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, assert_never

from hybrid_runner.model.messages import (
    CancelAsked,
    HelpWanted,
    JobDue,
    JobLater,
    QueueMessage,
    QueueResumed,
    RingPassedOn,
    WorkerCame,
    WorkerLeft,
    channel_of,
)
from hybrid_runner.model.news import JobsOverdue, MuteExpired, NextDue, QueueNews
from hybrid_runner.policy.allowance import Allowance
from hybrid_runner.policy.doorbell import Mode, Reason
from hybrid_runner.policy.ring_order import Part
from hybrid_runner.worker.paced import Paced
from hybrid_runner.worker.queue.claimer import BellSession, Claimer, Reasons, unmute
from hybrid_runner.worker.queue.members import Members
from hybrid_runner.worker.queue.missed_rings import MissedRings
from hybrid_runner.worker.report.status import QueueStatus

_LOOK_LATER = 0.025
"""Seconds before a worker looks for a ring that others are to look for at once."""


class QueueStation:
    """Wake ← messages, heartbeat's news, timer, poller, free slots; wake → claimer → executor."""

    def __init__(
        self,
        claimer: Claimer,
        reasons: Reasons,
        members: Members,
        missed: MissedRings,
        bell: BellSession,
        runs_here: Callable[[int], bool],
        ask_for_heartbeat: Callable[[], None],
        soon: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.queue = claimer.queue
        self.claimer = claimer
        self.wake = reasons.wake
        self.slots = reasons.slots
        self.timer = reasons.timer
        self.poller = reasons.poller
        self.members = members
        self.missed = missed
        self._bell = bell
        self._runs_here = runs_here
        self._ask_for_heartbeat = ask_for_heartbeat
        self._soon = soon
        self._heard = 0
        # Anybody can send messages: what each kind of them causes is bounded.
        self._looks = {
            Reason.RING: self._paced(Reason.RING, Allowance(at_once=500, per_second=500)),
            Reason.LATER: self._paced(Reason.LATER, Allowance(at_once=200, per_second=200)),
            Reason.HELP: self._paced(Reason.HELP, Allowance(at_once=5, per_second=5)),
        }
        self._alarms = Allowance(at_once=200, per_second=200)
        self._late_looks: dict[Reason, asyncio.TimerHandle] = {}
        self._examined = Allowance(at_once=500, per_second=500)
        self._passes = Allowance(at_once=100, per_second=50)
        self._call_all = Paced(self._ask_for_help, Allowance(at_once=1, per_second=2))

    def _paced(self, reason: Reason, allowance: Allowance) -> Paced:
        return Paced(partial(self.wake.up, reason), allowance)

    def heard(self, message: QueueMessage, sender: int) -> None:
        """Receive a message. Anybody can send one: whatever it says, it can cause a look or a
        heartbeat and nothing else, and no more of them than the allowances here.
        """
        self._heard += 1
        match message:
            case JobDue():
                self._on_ring(Reason.RING, sender)
            case JobLater(milliseconds):
                self._on_ring(Reason.LATER, sender, milliseconds)
            case RingPassedOn(later, ringer, place):
                self._on_passed_on(Reason.LATER if later else Reason.RING, ringer, place)
            case HelpWanted() | QueueResumed():
                self.missed.heard(insert=isinstance(message, QueueResumed))
                self._looks[Reason.HELP]()
            case CancelAsked(job_id):
                # The heartbeat brings what the table says.
                if not self._examined.take(time.monotonic()) or self._runs_here(job_id):
                    self._ask_for_heartbeat()
            case WorkerCame(worker_id) | WorkerLeft(worker_id):
                here = isinstance(message, WorkerCame)
                if self.members.denies(worker_id, here=here):
                    self._ask_for_heartbeat()
            case _:
                assert_never(message)

    def on_news(self, news: QueueNews) -> None:
        """Act on news of a heartbeat about this queue."""
        match news:
            case MuteExpired():
                self.wake.up(Reason.EXPIRED)
            case JobsOverdue():
                if self.claimer.mode is not Mode.FULL:
                    self.claimer.budget.allow_sweep()
                    self.wake.up(Reason.SWEEP)
            case NextDue():
                self.timer.advance(news.delay)
            case _:
                assert_never(news)

    def update_members(self, kinds_of: Mapping[str, str]) -> None:
        """Take the queue's workers from a heartbeat."""
        differed = self.members.kinds_differ
        self.members.update(kinds_of)
        if self.members.kinds_differ and not differed and self.claimer.is_muting:
            # Jobs whose rings this worker's mute suppressed may be for others.
            self._soon(unmute(self._bell, self.queue))

    def _on_ring(self, reason: Reason, ringer: int, due_in: int | None = None) -> None:
        """`due_in` so many milliseconds, if the ring says that."""
        self.missed.heard(insert=True)
        if not (self.members.share_rings and self._examined.take(time.monotonic())):
            self._look(reason, due_in)  # beyond the allowance, which all exceed, so do all
            return
        match self.members.part(ringer):
            case Part.LOOK:
                self._look_or_pass_on(reason, ringer, due_in)
            case Part.LOOK_LATER if due_in is not None:
                self._look(reason, due_in + round(_LOOK_LATER * 1000))
            case Part.LOOK_LATER:
                self._look_later(reason)
            case Part.NOTHING:
                pass

    def _on_passed_on(self, reason: Reason, ringer: int, place: int) -> None:
        self.missed.heard(insert=True)
        if not self._examined.take(time.monotonic()):
            self._looks[reason]()
        elif self.members.place(ringer) == place:
            self._look_or_pass_on(reason, ringer)

    def _look(self, reason: Reason, due_in: int | None = None) -> None:
        """Now, or when the job is due that a ring told of."""
        if due_in is None or not self._alarms.take(time.monotonic()):
            self._looks[reason]()
        else:
            self.timer.advance(timedelta(milliseconds=due_in))

    def _look_later(self, reason: Reason) -> None:
        if reason not in self._late_looks:
            self._late_looks[reason] = asyncio.get_running_loop().call_later(
                _LOOK_LATER, self._look_now, reason
            )

    def _look_now(self, reason: Reason) -> None:
        del self._late_looks[reason]
        self.wake.up(reason)

    def _look_or_pass_on(self, reason: Reason, ringer: int, due_in: int | None = None) -> None:
        """Look; a full worker passes the ring on to the next in order instead, if one is left that
        does not act on it anyway.
        """
        is_full, is_shared = self.claimer.mode is Mode.FULL, self.members.share_rings
        if not (is_full and is_shared):
            self._look(reason, due_in)
        if not (is_shared and (is_full or self.slots.is_short())):
            return
        if (place := self.members.next_place(ringer)) is None:
            return
        if self._passes.take(time.monotonic()):
            passed_on = RingPassedOn(reason is Reason.LATER, ringer, place)
            self._soon(self._bell.send(channel_of(self.queue), passed_on))
        else:
            self._call_all()

    def _ask_for_help(self) -> None:
        """Have all others look, in place of passing single rings on."""
        self._soon(self._bell.send(channel_of(self.queue), HelpWanted()))

    def on_shortage(self) -> None:
        """Looks leave jobs to others from now on, who may be asleep because this worker said that
        it looks for all.
        """
        if self.claimer.is_muting:
            self._soon(unmute(self._bell, self.queue))

    def status(self) -> QueueStatus:
        seen, missed = self.claimer.seen, self.missed
        refused_jobs, refused_kinds = self.claimer.claims.refused()
        return QueueStatus(
            queue=self.queue,
            mode=self.claimer.mode.value,
            slots=self.slots.total,
            running=self.slots.taken,
            looks=seen.looks,
            empty_looks=seen.empty,
            sweeps=seen.sweeps,
            found=dict(seen.found),
            consecutive_errors=seen.consecutive_errors,
            polls=self.poller.polls,
            empty_polls=self.poller.empty_polls,
            next_poll=self.poller.pause,
            errors=seen.errors,
            rings=self._heard,
            overdue=self.poller.overdue,
            busy=self.claimer.busy,
            missed=missed.count,
            missed_ago=missed.ago,
            refused_jobs=refused_jobs,
            refused_kinds=refused_kinds,
            last_minute=seen.last_minute.seen(time.monotonic()),
        )
