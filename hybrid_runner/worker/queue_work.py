"""Everything one worker has for one queue, wired together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from hybrid_runner.models import Claim, Taken
from hybrid_runner.policy.doorbell import Mode, Reason
from hybrid_runner.policy.pace import Pace
from hybrid_runner.policy.ranking import AT_ONCE, EVERYBODY, Part, part, place
from hybrid_runner.settings import Settings
from hybrid_runner.storage.statements import Lanes
from hybrid_runner.worker.bell import Bell
from hybrid_runner.worker.claimer import Claimer
from hybrid_runner.worker.poller import Poller
from hybrid_runner.worker.slots import Slots
from hybrid_runner.worker.status import QueueStatus
from hybrid_runner.worker.timers import Timer
from hybrid_runner.worker.wake import Wake

_LOOK_LATER = 0.025
_REASONS = {"": Reason.RING, "later": Reason.LATER}
_LONGEST_NUMBER = 10
_MOST_MEMBERS = 10_000


class QueueWork:
    """Wake ← listener, timer, poller, free slots; wake → claimer → executor."""

    def __init__(
        self,
        queue: str,
        slots: int,
        settings: Settings,
        *,
        worker_id: Callable[[], str],
        bell: Bell,
        hearing: Callable[[], bool],
        ring: Callable[[str, str], None],
        claim: Callable[[str, int, Lanes], Awaitable[Taken]],
        session: Callable[[], int],
        release_lost: Callable[[str], Awaitable[set[int]]],
        next_due: Callable[[str], Awaitable[timedelta | None]],
        start: Callable[[list[Claim], Slots], None],
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
            looked=self.poller.looked, set_timer=self.timer.set,
        )  # fmt: skip
        self.members: set[str] = set()
        """The live workers of this queue: as the last heartbeat knew them, and as they came and went since."""
        self._worker_id = worker_id
        self._ring = ring

    def heard(self, payload: str, ringer: int) -> None:
        """A ring on the queue's channel; whoever sent it, the worst it can do is cause a look."""
        word, _, rest = payload.partition(" ")
        match word:
            case "help":
                self.wake.up(Reason.HELP)
            case "here":
                self._met(rest)
            case "gone":
                self.members.discard(rest)
            case "pass":
                self._passed_on(*rest.split(" "))
            case _:
                self._rung(_REASONS.get(word, Reason.RING), ringer)

    def told(self, what: str, value: str | None) -> None:
        """What the heartbeat brought."""
        match what:
            case "expired":
                self.wake.up(Reason.EXPIRED)
            case "overdue" if self.claimer.mode is Mode.ASLEEP:
                self.wake.up(Reason.SWEEP)
            case "due" if value:
                self.timer.advance(timedelta(seconds=max(0.0, float(value))))

    def _rung(self, reason: Reason, ringer: int) -> None:
        position = place(ringer, self._worker_id(), self.members)
        match part(position, len(self.members)):
            case Part.LOOK:
                self._look_or_pass_on(reason, ringer, position)
            case Part.LOOK_LATER:
                asyncio.get_running_loop().call_later(_LOOK_LATER, self.wake.up, reason)
            case Part.NOTHING:
                pass

    def _met(self, worker_id: str) -> None:
        if worker_id and len(self.members) < _MOST_MEMBERS:
            self.members.add(worker_id)

    def _passed_on(self, word: str, *numbers: str) -> None:
        if len(numbers) != 2 or not all(n.isdecimal() and len(n) <= _LONGEST_NUMBER for n in numbers):
            return
        ringer, position = map(int, numbers)
        if place(ringer, self._worker_id(), self.members) == position:
            self._look_or_pass_on(_REASONS.get(word, Reason.RING), ringer, position)

    def _look_or_pass_on(self, reason: Reason, ringer: int, position: int) -> None:
        """A full worker cannot take it: the next in order can, if there are any that this ring is not for anyway."""
        if self.claimer.mode is Mode.FULL and len(self.members) > EVERYBODY:
            if position + AT_ONCE < len(self.members):
                word = "later" if reason is Reason.LATER else "now"
                self._ring(self.queue, f"pass {word} {ringer} {position + AT_ONCE}")
        else:
            self.wake.up(reason)

    def status(self) -> QueueStatus:
        """A snapshot."""
        seen = self.claimer.seen
        return QueueStatus(
            queue=self.queue, mode=self.claimer.mode.value, slots=self.slots.total, running=self.slots.taken, looks=seen.looks,
            empty_looks=seen.empty, sweeps=seen.sweeps, found=dict(seen.found), consecutive_errors=seen.consecutive_errors,
            polls=self.poller.polls, empty_polls=self.poller.empty_polls, next_poll=self.poller.pause,
        )  # fmt: skip
