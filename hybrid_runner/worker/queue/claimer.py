"""Looks for due jobs of one queue, as the doorbell's transitions say: one action at a time."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, assert_never

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.events import LookMade
from hybrid_runner.model.messages import Channel, HelpWanted, QueueMessage, channel_of
from hybrid_runner.policy.doorbell import (
    START,
    Action,
    Answer,
    Check,
    Checked,
    Doorbell,
    ListenerLost,
    Look,
    Looked,
    Marked,
    MarkInFlight,
    Mode,
    Mute,
    Muted,
    MuteMode,
    Open,
    Opened,
    Pause,
    Reason,
    Wait,
    Woken,
)
from hybrid_runner.policy.last_minute import LookCounter
from hybrid_runner.policy.look_rate import LookBudget
from hybrid_runner.settings import Settings
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Rows
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields, shorten
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.queue.members import Members
from hybrid_runner.worker.queue.poller import Poller
from hybrid_runner.worker.queue.slots import Slots
from hybrid_runner.worker.queue.timer import Timer
from hybrid_runner.worker.queue.wake import Wake

log = logging.getLogger("hybrid_runner.worker")

LOOK = "look"
"""The way of jobs that a look found which nothing outside had caused."""


class ClaimPort(Protocol):
    """What a claimer asks of the database: statements about its own queue."""

    took: float
    """Seconds of the last claim's statement, without waiting for a connection that is shared."""

    async def claim(self, slots: int, /, *, sweep: bool) -> list[Claim] | None:
        """Claim up to so many due jobs; with `sweep` from the start of the lanes. None: the worker
        stops, and the database was not asked.
        """

    def started(self) -> None:
        """What `claim` returned runs; until this is said, it may be lost."""

    async def next_due(self) -> timedelta | None:
        """How long until the next job of the queue is due; None if no job waits for its time."""

    async def reconcile(self) -> None:
        """Release jobs that Postgres shows as running here and that do not. Never beside a
        claim.
        """

    def refused(self) -> tuple[int, tuple[str, ...]]:
        """How many jobs, and which kinds, are left out because Postgres refuses their claims."""


class BellSession(Protocol):
    """The listener's connection. Doorbells are moved there, so that what the table of sleepers
    says ends when rings no longer arrive.
    """

    hearing: bool

    async def fetch(self, query: str, /, *args: Any) -> Rows:
        """Run one statement; raises if the connection is gone."""

    async def send(self, channel: Channel[QueueMessage], message: QueueMessage) -> None:
        """Send a message; lost if the connection is gone."""

    async def join_sleepers(self, queue: str) -> None:
        """Return once it is committed that this worker sleeps on the queue."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """What gives a claimer reasons to look, besides the listener's rings."""

    wake: Wake
    slots: Slots
    timer: Timer
    poller: Poller


@dataclass(slots=True)
class Looks:
    """Counts what one queue's looks found; read by status snapshots."""

    looks: int = 0
    empty: int = 0
    sweeps: int = 0
    found: dict[str, int] = field(default_factory=dict)
    consecutive_errors: int = 0
    errors: int = 0
    last_minute: LookCounter = field(default_factory=LookCounter)


class Claimer:
    """Makes all claims of this worker from one queue."""

    def __init__(
        self,
        queue: str,
        settings: Settings,
        reasons: Reasons,
        claims: ClaimPort,
        bell: BellSession,
        members: Members,
        start: Callable[[list[Claim], Slots], None],
        on_look: Sequence[Callable[[LookMade], None]],
    ) -> None:
        self.queue = queue
        self.seen = Looks()
        self.mode = Mode.DEAF
        self.asleep_since: float | None = None
        """By the monotonic clock; None: it is not asleep."""
        self.claims = claims
        self.budget = LookBudget(settings)
        self._settings = settings
        self._reasons = reasons
        self._bell = bell
        self._members = members
        self._start = start
        self._on_look = on_look
        self._step = START
        self._stopped = False
        self._busy_since: float | None = None
        self._reason = Reason.SWEEP
        self._full_since: float | None = None
        self._fresh_until = 0.0  # if full: until when others are not asked for help
        self._helped_at = -math.inf
        self._renew_at = 0.0  # when the mute has to be renewed
        self._outage = Outage(f"claiming from {queue}")
        self._bell_outage = Outage(f"the doorbell of {queue}")
        # A first failure is most likely a lost listener: tried again without a pause.
        self._bell_failed = False

    @property
    def busy(self) -> float:
        """For how many seconds it has waited for an answer from Postgres."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def _looks_for_all(self) -> bool:
        """Whether it finds whatever others could: only then it may let them sleep."""
        return not (self._members.kinds_differ or self._reasons.slots.is_short())

    @property
    def is_muting(self) -> bool:
        """Whether it may have muted the doorbell, so that inserts do not ring."""
        return self.mode in (Mode.AWAKE, Mode.FULL)

    def stop(self) -> None:
        """Make no more looks. Then wait for `run` to end: a look on its way may still bring
        jobs.
        """
        self._stopped = True
        self._reasons.wake.up(Reason.SLOT)

    async def run(self) -> None:
        """Look until stopped. If it was started before, it goes on in the same mode."""
        doorbell = Doorbell()
        while not self._stopped:
            state, action = self._step
            self._busy_since = None if isinstance(action, Wait) else time.monotonic()
            answer = await self._perform(action)
            if answer is not None:
                self._step = doorbell.step(state, answer)
                self._enter(self._step[0].mode)

    def _enter(self, mode: Mode) -> None:
        if mode is not self.mode:
            self.mode = mode
            self.asleep_since = time.monotonic() if mode is Mode.ASLEEP else None

    # --- what the transitions ask for

    async def _perform(self, action: Action) -> Answer | None:
        """Do what a transition asks for. None: it failed, after a pause it is to be done again."""
        match action:
            case Wait(pause):
                return await self._rest(pause)
            case Look(sweep, timer):
                return await self._look(sweep=sweep, timer=timer)
            case _:
                return await self._move_bell(action)

    async def _move_bell(self, action: Mute | Open | MarkInFlight | Check) -> Answer:
        """Runs on the listener's connection: if that fails, no rings will arrive either."""
        try:
            answer = await self._run_on_bell(action)
        except Exception as error:
            self._busy_since = None
            if self._bell.hearing and self._bell_failed:
                await self._bell_outage.pause(error)
            self._bell_failed = True
            self._reasons.wake.up(Reason.LISTENER)
            return ListenerLost()
        self._bell_failed = False
        self._bell_outage.over()
        return answer

    async def _run_on_bell(self, action: Mute | Open | MarkInFlight | Check) -> Answer:
        match action:
            case Mute(mute_mode, leave_sleepers):
                return Muted(await self._mute(mute_mode, leave_sleepers=leave_sleepers))
            case Open(join_sleepers):
                if join_sleepers:  # committed before the bell is opened: see mute_bell.sql
                    await self._bell.join_sleepers(self.queue)
                await worker_calls.open_bell(self._bell, self.queue)
                self._renew_at = 0.0
                self.budget.falls_anew()
                return Opened()
            case MarkInFlight():
                self.budget.falls_anew()
                return Marked(await worker_calls.mark_in_flight(self._bell))
            case Check(below):
                return Checked(await worker_calls.inserts_ended(self._bell, below))
            case _:
                assert_never(action)

    async def _mute(self, mute_mode: MuteMode, *, leave_sleepers: bool) -> bool:
        began = time.monotonic()
        if mute_mode is MuteMode.SATURATED:
            self._helped_at = began
        undone = await worker_calls.mute_bell(
            self._bell,
            self.queue,
            self._settings.tuning.mute_lease,
            mute_mode.value,
            leave_sleepers=leave_sleepers,
        )
        self._renew_at = began + self._settings.tuning.mute_renewal.total_seconds()
        if not self._looks_for_all and mute_mode is not MuteMode.FULL:
            # Meanwhile a heartbeat showed that workers which know other kinds are asleep.
            await unmute(self._bell, self.queue)
        return undone

    async def _rest(self, pause: Pause) -> Woken:
        if pause is Pause.NEVER:
            self.budget.falls_anew()
        wake = self._reasons.wake
        self._reason = await wake.wait(self._seconds(pause))
        is_free = self._reasons.slots.free() > 0
        return Woken(self._reason, hearing=self._bell.hearing, free=is_free, later=wake.later())

    def _seconds(self, pause: Pause) -> float | None:
        now = time.monotonic()
        match pause:
            case Pause.NEVER:
                return None
            case Pause.FOUND:
                return self.budget.pause_after_find(now)
            case Pause.EMPTY:
                return self.budget.pause_after_none(now)
            case Pause.FALLING:
                return self.budget.pause_while_falling(now)
            case Pause.FRESH:
                return max(0.0, self._fresh_until - now)
            case Pause.RENEWAL:
                return self._settings.tuning.mute_renewal.total_seconds()
            case _:
                assert_never(pause)

    # --- looking

    async def _look(self, *, sweep: bool, timer: bool) -> Looked | None:
        try:
            await self.claims.reconcile()
            if timer:
                # Before the look: a job that becomes due between the two would be found by neither.
                self._reasons.timer.ask()
                self._reasons.timer.set(await self.claims.next_due())
            return await self._claim_free(sweep=sweep)
        except Exception as error:
            self.seen.consecutive_errors += 1
            self.seen.errors += 1
            self.seen.last_minute.failed(time.monotonic())
            self._busy_since = None
            await self._outage.pause(error)
            return None

    async def _claim_free(self, *, sweep: bool) -> Looked | None:
        slots, poller = self._reasons.slots, self._reasons.poller
        free, began = slots.free(), time.monotonic()
        if not free or self._stopped:
            slots.awaited = True
            poller.looked(self._reason, None)
            return self._report(found=False, swept=False, now=began)
        sweep = self.budget.sweeps(began, wanted=sweep)
        claims = await self.claims.claim(free, sweep=sweep)
        if claims is None:
            return None
        ended = time.monotonic()
        if claims:
            self._start(claims, slots)  # first: whatever fails below, they are running
        self.claims.started()
        if self._outage.failures:
            self._outage.over()
        self.budget.looked(claims, free, ended - self.claims.took, ended, swept=sweep)
        self.seen.sweeps += sweep
        self._tell(claims, free, began, ended, sweep=sweep)
        slots.awaited = not slots.free()
        poller.looked(self._reason, len(claims))
        return self._report(found=bool(claims), swept=sweep and len(claims) < free, now=ended)

    def _tell(
        self, claims: list[Claim], free: int, began: float, ended: float, *, sweep: bool
    ) -> None:
        seen = self.seen
        way = self._reason.way if self._reason > Reason.SLOT else LOOK
        look = LookMade(self.queue, way, free, claims, sweep, began, ended, self.asleep_since)
        for on_look in self._on_look:
            on_look(look)
        seen.last_minute.answered(len(claims), ended - began, ended)
        seen.consecutive_errors = 0
        seen.looks += 1
        seen.empty += not claims
        seen.found[way] = seen.found.get(way, 0) + len(claims)
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "%s: looked (%s), %d of %d slots claimed",
                self.queue,
                way,
                len(claims),
                free,
                extra=log_event("queue.looked"),
            )
            for claim in claims:
                payload = (
                    f", payload {shorten(claim.payload or '(large)')}"
                    if self._settings.logs.log_payloads
                    else ""
                )
                log.debug(
                    "claimed by %s, claim %d, attempt %d of %d, %.1f ms after it was due%s",
                    way,
                    claim.number,
                    claim.attempt,
                    claim.max_attempts,
                    claim.pickup.total_seconds() * 1000,
                    payload,
                    extra=job_fields(claim, "job.claimed"),
                )

    def _report(self, *, found: bool, swept: bool, now: float) -> Looked:
        is_full = self._reasons.slots.awaited
        self._fresh_until = now + self._settings.tuning.full_help_after.total_seconds()
        help_after = self._settings.tuning.saturated_help_after.total_seconds()
        if not is_full:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        return Looked(
            found=found,
            full=is_full,
            swept=swept,
            brisk=self.budget.is_brisk(now, awake=self.is_muting or self.mode is Mode.DEAF),
            renew=now >= self._renew_at and self._looks_for_all,
            # Others are asked for help once in that time: each call makes them fall asleep anew.
            saturated=self._full_since is not None
            and now - max(self._full_since, self._helped_at) >= help_after,
        )


async def unmute(bell: BellSession, queue: str) -> None:
    """Undo a mute of this worker: it may have kept a worker that sleeps from being rung for."""
    with contextlib.suppress(RunnerError):
        await worker_calls.open_bell(bell, queue)
    await bell.send(channel_of(queue), HelpWanted())
