"""How often an awake worker looks, when being rung for is cheaper, and how often it may sweep.

Time is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from hybrid_runner.model.claims import Claim
from hybrid_runner.settings import Settings

HEALTHY = 0.005
"""Seconds that a look takes on a healthy table at most."""

TIMER = 0.001
"""Seconds: an event loop's timer cannot wait for less."""

FIRST_BLOCK = 1.0
"""Seconds after which a sweep is allowed again, whatever the last one took."""

LONGEST_BLOCK = 10.0
"""The same, after several that took long."""

SAME_MOMENT = 10.0
"""For so many seconds a plain look says how long looks take."""

TRANSFER = 20e6
"""Bytes per second: payloads come at least so fast."""

EXPECTED_BEFORE = timedelta(milliseconds=100)
"""A job that was inserted at least so long before it was due was expected."""

TOGETHER = 0.005
"""Seconds: expected jobs that become due within them are found by one look."""

LONGEST_TOGETHER = 0.01
"""The same, if only then there are a few."""

_A_FEW = 3

_FEW = 20
"""In a larger find the times of about so many are compared, which stand for the others."""


class DecayingRate:
    """How much per second, where the older counts the less."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._rate = 0.0
        self._at = -math.inf

    def add(self, count: float, now: float) -> None:
        """So much happened now."""
        self._rate = self.rate(now) + count / self._memory
        self._at = now

    def rate(self, now: float) -> float:
        """How much per second."""
        return self._rate * math.exp((self._at - now) / self._memory) if self._rate else 0.0


def is_brisk(rate: float, doorbell_rate: float, *, awake: bool) -> bool:
    """Whether to look without being rung for; an awake worker stays so at a third of the rate."""
    return rate >= (doorbell_rate / 3 if awake else doorbell_rate)


def pause_after_find(rate: float, look_batch_rate: float, look_batch_pause: float) -> float:
    """Pause after a look that found jobs: 0, unless they come so fast that looks would be many and
    small.
    """
    return look_batch_pause if rate >= look_batch_rate else 0.0


def pause_after_none(rate: float, look: float, spent: float, share: float, longest: float) -> float:
    """Pause after an empty look: a quarter of the mean gap between jobs; longer if empty looks have
    used up `share` of the time; 0 if shorter than a timer can be.

    `look` is what a look costs, `spent` the share of the time that empty looks took of late.
    """
    expected = longest if rate <= 0 else min(longest, 0.25 / rate)
    if spent >= share:
        expected = max(expected, look * (1 - share) / share)
    return 0.0 if expected < TIMER / 2 else expected


def pause_for_expected(rate: float, unexpected: float, doorbell_rate: float) -> float:
    """The shortest pause between looks: 0, unless only expected jobs keep the worker awake; then
    each look finds a few.

    `rate` is of all jobs, `unexpected` of those that a worker should find at once.
    """
    if is_brisk(unexpected, doorbell_rate, awake=True):
        return 0.0
    if not is_brisk(rate, doorbell_rate, awake=True):
        return 0.0
    return min(LONGEST_TOGETHER, max(TOGETHER, _A_FEW / rate))


def count_unexpected(claims: Sequence[Claim]) -> int:
    """How many of the jobs that a look found were inserted shortly before they were due, about."""
    every = len(claims) // _FEW or 1
    unexpected = sum(
        claim.created_at is None or claim.run_at - claim.created_at < EXPECTED_BEFORE
        for claim in claims[::every]
    )
    return min(len(claims), unexpected * every)


@dataclass(slots=True)
class Sweeps:
    """Limits sweeps to a small share of the time when one walks over millions of dead entries.

    One that took long may also have waited: for a lock, a disk, the network. Only another one can
    tell, so it comes soon; the pauses grow while they go on taking long.
    """

    factor: float
    """The next sweep comes no sooner than so many times what the last one cost."""
    ready_at: float = -math.inf
    last_at: float = -math.inf
    _longest: float = FIRST_BLOCK

    def allowed(self, now: float) -> bool:
        """Whether a sweep may start."""
        return now >= self.ready_at

    def allow(self) -> None:
        """Let the next one start whatever the last one took: a job is known to wait."""
        self.ready_at = -math.inf

    def took(self, began: float, ended: float, usual: float = 0.0) -> None:
        """A sweep has ended; the time that any look takes does not count: on a healthy table, and
        of late, which is `usual`.
        """
        pause = self.factor * max(0.0, ended - began - HEALTHY - usual)
        self.last_at = ended
        self.ready_at = ended + min(self._longest, pause)
        if pause > self._longest:
            self._longest = min(LONGEST_BLOCK, 2 * self._longest)
        elif pause <= FIRST_BLOCK:
            self._longest = FIRST_BLOCK


class LookBudget:
    """Spreads the looks of one queue's claimer by what they found of late and what they cost."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        memory = settings.tuning.doorbell_rate_window.total_seconds()
        self._arrivals = DecayingRate(memory)  # jobs found
        self._unexpected = DecayingRate(memory)  # of them those that were not expected
        self._empty_seconds = DecayingRate(memory)  # seconds spent on looks that found nothing
        self._found_fewer = True  # the last look found fewer jobs than it asked for
        self._look_seconds = 0.001  # of the last empty look
        self._plain_seconds, self._plain_at = 0.0, -math.inf  # of the last look that was no sweep
        self._sweeps = Sweeps(settings.tuning.sweep_cost_factor)
        self._sweep_every = settings.tuning.sweep_every.total_seconds()
        self._falling_pause = 0.0
        self._silence_at = -math.inf

    def sweeps(self, now: float, *, wanted: bool) -> bool:
        """Whether a look is to go from the start of the lanes.

        While the bell is muted, a job that was committed late and has an old run_at is found by a
        sweep alone, so one is due now and then.
        """
        is_due = now - self._sweeps.last_at >= self._sweep_every
        return (wanted or is_due) and self._sweeps.allowed(now)

    def looked(
        self, claims: Sequence[Claim], asked: int, began: float, ended: float, *, swept: bool
    ) -> None:
        """Count a look and what it found."""
        if swept:
            # If the heartbeat got no answer meanwhile, the network was slow, not the sweep.
            began_to_count = ended if began <= self._silence_at else began
            self._sweeps.took(began_to_count, ended, self._usual_seconds(claims, began, ended))
        else:
            self._plain_seconds, self._plain_at = ended - began, ended
        self._found_fewer = len(claims) < asked
        if claims:
            self._arrivals.add(len(claims), ended)
            self._unexpected.add(count_unexpected(claims), ended)
        else:
            self._look_seconds = ended - began
            self._empty_seconds.add(ended - began, ended)

    def allow_sweep(self) -> None:
        """Let the next sweep start whatever the last one took."""
        self._sweeps.allow()

    def _usual_seconds(self, claims: Sequence[Claim], began: float, ended: float) -> float:
        """How long a look takes now, and what it brought, without regard to what it walked over."""
        if ended - began <= HEALTHY:
            return 0.0
        size = sum(len(claim.payload or "") + len(claim.data or "") for claim in claims)
        is_recent = ended - self._plain_at < SAME_MOMENT
        return max(size / TRANSFER, self._plain_seconds if is_recent else 0.0)

    def unanswered(self, now: float) -> None:
        """The heartbeat got no answer: how long a look takes now is not its cost."""
        self._silence_at = now

    def is_brisk(self, now: float, *, awake: bool) -> bool:
        """Whether jobs come so fast that looking is cheaper than being rung for."""
        return is_brisk(self._arrivals.rate(now), self._settings.tuning.doorbell_rate, awake=awake)

    def pause_after_find(self, now: float) -> float:
        """Seconds from a look that found jobs to the next."""
        settings = self._settings
        pause = pause_after_find(
            self._arrivals.rate(now),
            settings.tuning.look_batch_rate,
            settings.tuning.look_batch_pause.total_seconds(),
        )
        return max(pause, self._pause_for_expected(now)) if self._found_fewer else pause

    def pause_after_none(self, now: float) -> float:
        """Seconds from a look that found nothing to the next."""
        settings, rate, spent = (
            self._settings,
            self._arrivals.rate(now),
            self._empty_seconds.rate(now),
        )
        longest = settings.tuning.idle_look_pause_max.total_seconds()
        pause = pause_after_none(
            rate, self._look_seconds, spent, settings.tuning.idle_look_share, longest
        )
        return max(pause, self._pause_for_expected(now))

    def pause_while_falling(self, now: float) -> float:
        """Seconds until the next look while falling asleep: longer each time."""
        self._falling_pause = min(
            self._settings.tuning.falling_pause_max.total_seconds(),
            max(0.001, 2 * self._falling_pause),
        )
        return max(self._falling_pause, self._sweeps.ready_at - now)

    def falls_anew(self) -> None:
        """The first pause while falling asleep is short again."""
        self._falling_pause = 0.0

    def _pause_for_expected(self, now: float) -> float:
        return pause_for_expected(
            self._arrivals.rate(now),
            self._unexpected.rate(now),
            self._settings.tuning.doorbell_rate,
        )
