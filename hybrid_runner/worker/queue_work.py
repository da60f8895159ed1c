"""Everything one worker has for one queue, wired together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from hybrid_runner.models import Claim
from hybrid_runner.policy.pace import Pace
from hybrid_runner.settings import Settings
from hybrid_runner.worker.claimer import Claimer
from hybrid_runner.worker.poller import Poller
from hybrid_runner.worker.slots import Slots
from hybrid_runner.worker.status import QueueStatus
from hybrid_runner.worker.timers import Timer
from hybrid_runner.worker.wake import Reason, Wake


class QueueWork:
    """Wake ← listener, timer, poller, free slots; wake → claimer → executor."""

    def __init__(
        self,
        queue: str,
        slots: int,
        settings: Settings,
        *,
        claim: Callable[[str, int], Awaitable[list[Claim]]],
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
            queue, wake=self.wake, slots=self.slots, claim=claim, release_lost=release_lost,
            next_due=next_due, start=start, room=room,
            looked=self.poller.looked, set_timer=self.timer.set,
        )  # fmt: skip

    def heard(self, payload: str) -> None:
        """A ring on the queue's channel; whoever sent it, the worst it can do is cause a look."""
        match payload:
            case "later":
                self.wake.up(Reason.LATER)
            case "help":
                self.wake.up(Reason.SWEEP)
            case _:
                self.wake.up(Reason.RING)

    def status(self) -> QueueStatus:
        """A snapshot."""
        seen = self.claimer.seen
        return QueueStatus(
            queue=self.queue, slots=self.slots.total, running=self.slots.taken, looks=seen.looks,
            empty_looks=seen.empty, found=dict(seen.found), consecutive_errors=seen.consecutive_errors,
            polls=self.poller.polls, empty_polls=self.poller.empty_polls, next_poll=self.poller.pause,
        )  # fmt: skip
