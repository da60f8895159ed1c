"""Looks for due jobs of one queue: does what the doorbell's transitions ask for, one thing at a time."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, assert_never

from hybrid_runner.happenings import Search
from hybrid_runner.models import Claim, Taken
from hybrid_runner.policy.doorbell import (
    START,
    Action,
    Answer,
    Check,
    Checked,
    Doorbell,
    Look,
    Looked,
    Lost,
    Manner,
    Mode,
    Mute,
    Muted,
    Open,
    Opened,
    Pause,
    Reason,
    Wait,
    Witness,
    Witnessed,
    Woken,
)
from hybrid_runner.policy.lately import Lately
from hybrid_runner.policy.looking import (
    Recent,
    Sweeps,
    count_unexpected,
    is_brisk,
    pause_after_find,
    pause_after_none,
    pause_for_known,
)
from hybrid_runner.settings import Settings
from hybrid_runner.storage.statements import Lanes
from hybrid_runner.telemetry.about import about, shorten
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.frontier import Frontier
from hybrid_runner.worker.loops import Outage
from hybrid_runner.worker.slots import Slots
from hybrid_runner.worker.wake import Wake

log = logging.getLogger("hybrid_runner.worker")

_HELD = 5.0
"""Seconds until the next try to put back a job whose row somebody held."""

LOOK = "look"
"""The way of what was found without a reason from outside, by looking."""


class Bell(Protocol):
    """The queue's doorbell, as the listener's session reaches it; each raises RunnerError when it cannot."""

    async def open(self, queue: str, *, lie_down: bool) -> None:
        """From now on every insert rings."""

    async def mute(self, queue: str, manner: Manner, *, rise: bool) -> bool:
        """Inserts are quiet for a moment; whether somebody sleeps."""

    async def witness(self) -> int:
        """A number above all transactions in flight."""

    async def ended(self, below: int) -> bool:
        """Whether all transactions below a number have ended."""


@dataclass(slots=True)
class Looks:
    """What one queue's looks came to; read by status snapshots."""

    looks: int = 0
    empty: int = 0
    sweeps: int = 0
    found: dict[str, int] = field(default_factory=dict)
    consecutive_errors: int = 0
    errors: int = 0
    lately: Lately = field(default_factory=Lately)


class Claimer:
    """The only one that claims from its queue in this worker."""

    def __init__(
        self,
        queue: str,
        *,
        settings: Settings,
        wake: Wake,
        slots: Slots,
        bell: Bell,
        hearing: Callable[[], bool],
        claim: Callable[[str, int, Lanes], Awaitable[Taken]],
        session: Callable[[], int],
        release_lost: Callable[[str], Awaitable[dict[int, bool]]],
        next_due: Callable[[str], Awaitable[timedelta | None]],
        start: Callable[[list[Claim], Slots], None],
        room: Callable[[], int],
        mixed: Callable[[], bool],
        unmute: Callable[[], None],
        looked: Callable[[Reason, int | None], None],
        searched: Callable[[Search], None],
        set_timer: Callable[[timedelta | None], None],
    ) -> None:
        self.queue = queue
        self.seen = Looks()
        self.mode = Mode.DEAF
        self.asleep_since: float | None = None
        """By the monotonic clock; None: it is not asleep."""
        self._step = START
        self._busy_since: float | None = None
        self._settings = settings
        self._wake = wake
        self._slots = slots
        self._bell = bell
        self._hearing = hearing
        self._claim = claim
        self._session = session
        self._known_session = 1
        self._release_lost = release_lost
        self._next_due = next_due
        self._start = start
        self._room = room
        self._mixed = mixed
        self._unmute = unmute
        self._helped_at = -math.inf
        self._looked = looked
        self._searched = searched
        self._set_timer = set_timer
        self._stopped = False
        self._ask_again_at = math.inf  # somebody held the row of a job that does not run here
        self.in_doubt = False
        """Whether a claim was sent whose answer has not arrived: what it took, if it did, would run nowhere."""
        self._full = False  # the last look left no free slot: what a free slot means
        self._full_since: float | None = None
        self._reason = Reason.SWEEP
        self._frontier = Frontier(settings.frontier_margin)
        self._arrivals = Recent(settings.awake_memory.total_seconds())  # jobs found
        self._unexpected = Recent(settings.awake_memory.total_seconds())  # those of them that came without notice
        self._found_all = True  # the last look found fewer jobs than it asked for
        self._in_vain = Recent(settings.awake_memory.total_seconds())  # seconds spent on looks that found nothing
        self._sweeps = Sweeps(settings.sweep_factor)
        self._look_seconds = 0.001  # of the last empty look
        self._silence_at = -math.inf
        self._fresh_until = 0.0  # if full: how long others are not asked for help
        self._renew_at = 0.0
        self._falling_pause = 0.0
        self._outage = Outage(f"claiming from {queue}")
        self._bell_outage = Outage(f"the doorbell of {queue}")
        self._bell_failed = False  # the first failure is a lost listener, most likely: no time to lose
        slots.freed = self._on_free_slot

    @property
    def busy(self) -> float:
        """Seconds for which it has waited for an answer from Postgres."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def stop(self) -> None:
        """Look no more; a look that is on its way is waited for, since what it claims must not be lost."""
        self._stopped = True
        self._wake.up(Reason.SLOT)

    def unheard(self) -> None:
        """The heartbeat got no answer: how long a look takes at this moment is not its cost."""
        self._silence_at = time.monotonic()

    async def run(self) -> None:
        """Look until stopped; started again, it goes on where it was."""
        doorbell = Doorbell()
        while not self._stopped:
            stand, action = self._step
            self._busy_since = None if isinstance(action, Wait) else time.monotonic()
            answer = await self._perform(action)
            if answer is not None:
                self._step = doorbell.step(stand, answer)
                self._enter(self._step[0].mode)

    def _enter(self, mode: Mode) -> None:
        if mode is not self.mode:
            self.mode = mode
            self.asleep_since = time.monotonic() if mode is Mode.ASLEEP else None

    async def settle_doubt(self) -> None:
        """Put back what Postgres shows as running here and is not. Not while a claim is on its way.

        After a claim whose answer was lost; and on every new connection: the server may be another one since, and not know an
        outcome that the old one took.
        """
        if self.in_doubt or self._session() != self._known_session or time.monotonic() >= self._ask_again_at:
            lost = await self._release_lost(self.queue)
            for job_id in (job_id for job_id, released in lost.items() if released):
                log.warning(
                    "it does not run here, whatever Postgres was told: queued again", extra=log_event("job.released", job=job_id)
                )
            self.in_doubt = False
            self._known_session = self._session()
            self._ask_again_at = math.inf if all(lost.values()) else time.monotonic() + _HELD

    # --- what the transitions ask for

    async def _perform(self, action: Action) -> Answer | None:
        """Do it; None: it failed, a pause was made, do it again."""
        match action:
            case Wait(pause):
                return await self._rest(pause)
            case Look(sweep, timer):
                return await self._look(sweep=sweep, timer=timer)
            case _:
                return await self._ring(action)

    async def _ring(self, action: Mute | Open | Witness | Check) -> Answer:
        """What is done to the bell is done on the listener's session; when that fails, nobody will ring us."""
        try:
            answer = await self._at_the_bell(action)
        except Exception as error:
            self._busy_since = None
            if self._hearing() and self._bell_failed:
                await self._bell_outage.pause(error)
            self._bell_failed = True
            self._wake.up(Reason.LISTENER)
            return Lost()
        self._bell_failed = False
        self._bell_outage.over()
        return answer

    async def _at_the_bell(self, action: Mute | Open | Witness | Check) -> Answer:
        match action:
            case Mute(manner, rise):
                began = time.monotonic()
                if manner is Manner.SATURATED:
                    self._helped_at = began
                undone = await self._bell.mute(self.queue, manner, rise=rise)
                self._renew_at = began + self._settings.mute_renewal.total_seconds()
                if self._mixed() and manner is not Manner.FULL:
                    self._unmute()  # it has turned out meanwhile that others sleep who know other kinds
                return Muted(undone)
            case Open(lie_down):
                await self._bell.open(self.queue, lie_down=lie_down)
                self._renew_at = self._falling_pause = 0.0
                return Opened()
            case Witness():
                self._falling_pause = 0.0
                return Witnessed(await self._bell.witness())
            case Check(below):
                return Checked(await self._bell.ended(below))
            case _:
                assert_never(action)

    async def _rest(self, pause: Pause) -> Woken:
        if pause is Pause.NEVER:
            self._falling_pause = 0.0
        self._reason = await self._wake.wait(self._seconds(pause))
        return Woken(self._reason, hearing=self._hearing(), free=self._free() > 0, later=self._wake.later())

    def _seconds(self, pause: Pause) -> float | None:
        settings, now = self._settings, time.monotonic()
        match pause:
            case Pause.NEVER:
                return None
            case Pause.FOUND:
                found = pause_after_find(self._arrivals.rate(now), settings.gather_from, settings.gather.total_seconds())
                return max(found, self._pause_for_known(now)) if self._found_all else found
            case Pause.EMPTY:
                rate, spent, longest = self._arrivals.rate(now), self._in_vain.rate(now), settings.look_pause_max.total_seconds()
                none = pause_after_none(rate, self._look_seconds, spent, settings.look_share, longest)
                return max(none, self._pause_for_known(now))
            case Pause.FALLING:
                longest = settings.fall_pause_max.total_seconds()
                self._falling_pause = min(longest, max(0.001, 2 * self._falling_pause))
                return max(self._falling_pause, self._sweeps.ready_at - now)
            case Pause.FRESH:
                return max(0.0, self._fresh_until - now)
            case Pause.RENEWAL:
                return settings.mute_renewal.total_seconds()
            case _:
                assert_never(pause)

    def _pause_for_known(self, now: float) -> float:
        return pause_for_known(self._arrivals.rate(now), self._unexpected.rate(now), self._settings.awake_from)

    # --- looking

    async def _look(self, *, sweep: bool, timer: bool) -> Looked | None:
        try:
            await self.settle_doubt()
            if timer:
                # Before the look: a job that becomes due between the two is then found by the look, not by neither.
                self._set_timer(await self._next_due(self.queue))
            return await self._claim_free(sweep=sweep)
        except Exception as error:
            self.seen.consecutive_errors += 1
            self.seen.errors += 1
            self.seen.lately.failed(time.monotonic())
            self._busy_since = None
            await self._outage.pause(error)
            return None

    async def _claim_free(self, *, sweep: bool) -> Looked:
        free, began = self._free(), time.monotonic()
        if not free or self._stopped:
            self._full = True
            self._looked(self._reason, None)
            return self._report(found=0, swept=False, now=began)
        # Awake, the bell is silent about what was committed late with an old run_at: a sweep now and then finds it.
        is_due = began - self._sweeps.last_at >= self._settings.sweep_every.total_seconds()
        sweep = (sweep or is_due) and self._sweeps.allowed(began)
        claims = await self._claim_behind_frontier(free, sweep=sweep)
        ended = time.monotonic()
        if sweep:
            # What the network took says nothing of what sweeps cost.
            self._sweeps.took(ended if began <= self._silence_at else began, ended)
            self.seen.sweeps += 1
        if not claims:
            self._look_seconds = ended - began
            self._in_vain.saw(ended - began, ended)
        if claims:
            self._start(claims, self._slots)
            self._unexpected.saw(count_unexpected(claims), ended)
        self._found_all = len(claims) < free
        self._full = not self._free()
        self._looked(self._reason, len(claims))
        return self._report(found=len(claims), swept=sweep and len(claims) < free, now=ended)

    async def _claim_behind_frontier(self, free: int, *, sweep: bool) -> list[Claim]:
        began = time.monotonic()
        self.in_doubt = True
        taken = await self._claim(self.queue, free, self._frontier.lanes(sweep=sweep))
        self.in_doubt = False
        self._frontier.moved_by(taken, free)
        self._outage.over()
        self._note(taken.claims, free, began, sweep=sweep)
        return taken.claims

    def _note(self, claims: list[Claim], free: int, began: float, *, sweep: bool) -> None:
        seen = self.seen
        way = self._reason.way if self._reason > Reason.SLOT else LOOK
        ended = time.monotonic()
        self._searched(Search(self.queue, way, free, claims, sweep, began, ended))
        seen.lately.answered(len(claims), ended - began, ended)
        seen.consecutive_errors = 0
        seen.looks += 1
        seen.empty += not claims
        seen.found[way] = seen.found.get(way, 0) + len(claims)
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "%s: looked (%s), %d of %d slots claimed", self.queue, way, len(claims), free, extra=log_event("queue.looked")
            )
            for claim in claims:
                payload = f", payload {shorten(claim.payload)}" if self._settings.log_payloads else ""
                log.debug(
                    "claimed by %s, claim %d, attempt %d of %d, %.1f ms after it was due%s",
                    way, claim.claim, claim.attempt, claim.max_attempts, claim.pickup.total_seconds() * 1000, payload,
                    extra=about(claim, "job.claimed"),
                )  # fmt: skip

    def _report(self, *, found: int, swept: bool, now: float) -> Looked:
        if found:
            self._arrivals.saw(found, now)
        self._fresh_until = now + self._settings.full_after.total_seconds()
        help_after = self._settings.help_after.total_seconds()
        if not self._full:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        return Looked(
            found=found > 0,
            full=self._full,
            swept=swept,
            brisk=is_brisk(self._arrivals.rate(now), self._settings.awake_from, awake=self.mode in (Mode.AWAKE, Mode.FULL)),
            renew=now >= self._renew_at and not self._mixed(),
            # Those who can help are told once in that time: each time costs them a fall asleep.
            saturated=self._full_since is not None and now - max(self._full_since, self._helped_at) >= help_after,
        )

    def _free(self) -> int:
        return min(self._slots.free(), self._room())

    def _on_free_slot(self) -> None:
        if self._full:
            self._wake.up(Reason.SLOT)
