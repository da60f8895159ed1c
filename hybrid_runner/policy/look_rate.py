"""How often a worker looks while it is awake, when being rung is cheaper, and how often it may
sweep. Time is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.model.claims import Claim
from hybrid_runner.settings import Settings

HEALTHY = 0.005
"""Seconds that a look may take without anything being wrong."""


TIMER = 0.001
"""Seconds below which timers of an event loop are of no use."""


LONGEST_BLOCK = 300.0
"""Seconds after which a sweep is allowed whatever the last one cost: it may have been the network
that took so long.
"""


KNOWN_BEFORE = timedelta(milliseconds=100)
"""A job that was inserted so long before it was due, or earlier, came at a time that was known."""

TOGETHER = 0.003
"""Seconds: jobs that become due within them, at times that were known, are found by one look."""

_FEW = 20
"""A look that finds more jobs costs little for each, so their times are not compared."""


class DecayingRate:
    """Something per second over the last moments: it counts less the older it is."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._rate = 0.0
        self._at = -math.inf

    def add(self, count: float, now: float) -> None:
        """So much was seen."""
        self._rate = self.rate(now) + count / self._memory
        self._at = now

    def rate(self, now: float) -> float:
        """So much per second."""
        return self._rate * math.exp((self._at - now) / self._memory) if self._rate else 0.0


def is_brisk(rate: float, awake_from: float, *, awake: bool) -> bool:
    """Whether to look without being rung; once awake, a third of the rate keeps it so."""
    return rate >= (awake_from / 3 if awake else awake_from)


def pause_after_find(rate: float, gather_from: float, gather: float) -> float:
    """None, unless jobs come so fast that looks would be many and small."""
    return gather if rate >= gather_from else 0.0


def pause_after_none(rate: float, look: float, spent: float, share: float, longest: float) -> float:
    """A quarter of the time in which a job is expected, if that is worth a timer; more once looks
    have spent their share.

    `look` is what one costs, `spent` the share of the last moments that went into looks that found
    nothing.
    """
    expected = longest if rate <= 0 else min(longest, 0.25 / rate)
    if spent >= share:
        expected = max(expected, look * (1 - share) / share)
    return 0.0 if expected < TIMER / 2 else expected


def pause_for_known(rate: float, unexpected: float, awake_from: float) -> float:
    """The least pause between looks: some while only jobs whose time was known keep a worker awake,
    else none.

    `rate` counts all jobs, `unexpected` those that came without notice; for their sake it would
    look at once.
    """
    others_keep_it_awake = is_brisk(unexpected, awake_from, awake=True)
    return TOGETHER if is_brisk(rate, awake_from, awake=True) and not others_keep_it_awake else 0.0


def count_unexpected(claims: Sequence[Claim]) -> int:
    """How many of the jobs that a look found came without notice, as an insert does that is due at
    once.
    """
    if len(claims) > _FEW:
        return len(claims)
    return sum(
        claim.created_at is None or claim.run_at - claim.created_at < KNOWN_BEFORE
        for claim in claims
    )


@dataclass(slots=True)
class Sweeps:
    """Looks from the start of the lanes may take a small share of the time, whatever they cost."""

    factor: float
    """The next one comes no sooner than so many times what the last one cost."""
    ready_at: float = -math.inf
    last_at: float = -math.inf

    def allowed(self, now: float) -> bool:
        """Whether one may start."""
        return now >= self.ready_at

    def took(self, began: float, ended: float) -> None:
        """One has ended. What any look costs on a healthy table does not count."""
        self.last_at = ended
        self.ready_at = ended + min(LONGEST_BLOCK, self.factor * max(0.0, ended - began - HEALTHY))


class LookBudget:
    """How a queue's claimer spreads its looks: by what they found of late, and what they cost."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        memory = settings.tuning.doorbell_rate_window.total_seconds()
        self._arrivals = DecayingRate(memory)  # jobs found
        self._unexpected = DecayingRate(memory)  # those of them that came without notice
        self._in_vain = DecayingRate(memory)  # seconds spent on looks that found nothing
        self._found_all = True  # the last look found fewer jobs than it asked for
        self._look_seconds = 0.001  # of the last empty look
        self._sweeps = Sweeps(settings.tuning.sweep_cost_factor)
        self._sweep_every = settings.tuning.sweep_every.total_seconds()
        self._falling_pause = 0.0
        self._silence_at = -math.inf

    def sweeps(self, now: float, *, wanted: bool) -> bool:
        """Whether a look is to go from the start of the lanes.

        Awake, the bell is silent about what was committed late with an old run_at: a sweep now and
        then finds it.
        """
        is_due = now - self._sweeps.last_at >= self._sweep_every
        return (wanted or is_due) and self._sweeps.allowed(now)

    def looked(
        self, claims: Sequence[Claim], asked: int, began: float, ended: float, *, swept: bool
    ) -> None:
        """A look came to this."""
        if swept:
            # What the network took says nothing of what sweeps cost.
            self._sweeps.took(ended if began <= self._silence_at else began, ended)
        self._found_all = len(claims) < asked
        if claims:
            self._arrivals.add(len(claims), ended)
            self._unexpected.add(count_unexpected(claims), ended)
        else:
            self._look_seconds = ended - began
            self._in_vain.add(ended - began, ended)

    def unanswered(self, now: float) -> None:
        """The heartbeat got no answer: how long a look takes at this moment is not its cost."""
        self._silence_at = now

    def is_brisk(self, now: float, *, awake: bool) -> bool:
        """Whether jobs come so fast that looking is cheaper than being rung for."""
        return is_brisk(self._arrivals.rate(now), self._settings.tuning.doorbell_rate, awake=awake)

    def pause_after_find(self, now: float) -> float:
        """Seconds until the next look."""
        settings = self._settings
        pause = pause_after_find(
            self._arrivals.rate(now),
            settings.tuning.look_batch_rate,
            settings.tuning.look_batch_pause.total_seconds(),
        )
        return max(pause, self._pause_for_known(now)) if self._found_all else pause

    def pause_after_none(self, now: float) -> float:
        """Seconds until the next look."""
        settings, rate, spent = self._settings, self._arrivals.rate(now), self._in_vain.rate(now)
        longest = settings.tuning.idle_look_pause_max.total_seconds()
        pause = pause_after_none(
            rate, self._look_seconds, spent, settings.tuning.idle_look_share, longest
        )
        return max(pause, self._pause_for_known(now))

    def pause_while_falling(self, now: float) -> float:
        """Seconds until the next look: longer each time, and not before a sweep is allowed."""
        self._falling_pause = min(
            self._settings.tuning.falling_pause_max.total_seconds(),
            max(0.001, 2 * self._falling_pause),
        )
        return max(self._falling_pause, self._sweeps.ready_at - now)

    def falls_anew(self) -> None:
        """The first pause is short again."""
        self._falling_pause = 0.0

    def _pause_for_known(self, now: float) -> float:
        return pause_for_known(
            self._arrivals.rate(now),
            self._unexpected.rate(now),
            self._settings.tuning.doorbell_rate,
        )
