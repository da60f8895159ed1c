"""Doorbells that drop one rule each."""

from __future__ import annotations

from dataclasses import replace

from hybrid_runner.policy.doorbell import (
    Answer,
    Doorbell,
    Look,
    Looked,
    Manner,
    Mode,
    Mute,
    Pause,
    Reason,
    Stand,
    Step,
    Wait,
    Witnessed,
    Woken,
)


class WaitsForNobody(Doorbell):
    """Transactions in flight are taken for ended."""

    def step(self, stand: Stand, answer: Answer) -> Step:
        if isinstance(answer, Witnessed):
            return replace(stand, below=None), Look(sweep=True, timer=True)
        return super().step(stand, answer)


class FindsAndSleeps(Doorbell):
    """A look that finds jobs ends the wait."""

    def asleep_if_nothing_is_left(self, stand: Stand, looked: Looked) -> Step:
        return super().asleep_if_nothing_is_left(replace(stand, below=None) if looked.found else stand, looked)


class SleepsAfterAnyLook(Doorbell):
    """A look that was no sweep will do."""

    def asleep_if_nothing_is_left(self, stand: Stand, looked: Looked) -> Step:
        return super().asleep_if_nothing_is_left(stand, replace(looked, swept=True))


class AsksNobody(Doorbell):
    """Full, it mutes the bell as if it would look itself."""

    def full_woken(self, stand: Stand, woken: Woken) -> Step:
        after, action = super().full_woken(stand, woken)
        return after, replace(action, manner=Manner.LOOKING) if isinstance(action, Mute) else action


class HelpsLikeAnyRing(Doorbell):
    """A ring for help causes a look and nothing else."""

    def falling_woken(self, stand: Stand, reason: Reason) -> Step:
        return super().falling_woken(stand, Reason.RING if reason is Reason.HELP else reason)

    def asleep_woken(self, stand: Stand, woken: Woken) -> Step:
        return super().asleep_woken(stand, replace(woken, reason=Reason.RING) if woken.reason is Reason.HELP else woken)


class IgnoresMutesThatRanOut(Doorbell):
    """Asleep, it does not care that the owner of a mute died."""

    def asleep_woken(self, stand: Stand, woken: Woken) -> Step:
        return (stand, Wait(Pause.NEVER)) if woken.reason is Reason.EXPIRED else super().asleep_woken(stand, woken)


class TrustsTheOldLock(Doorbell):
    """The listener was lost and is back: it believes that it still lies."""

    def step(self, stand: Stand, answer: Answer) -> Step:
        if isinstance(answer, Woken) and answer.hearing and stand.mode is not Mode.DEAF:
            return self.woken(stand, answer)
        return super().step(stand, answer)


class StaysAsleepWhenDeaf(Doorbell):
    """The listener is back: it goes on as if every ring had been heard."""

    def deaf_woken(self, stand: Stand, woken: Woken) -> Step:
        if woken.hearing:
            return Stand(Mode.ASLEEP, lying=True), Wait(Pause.NEVER)
        return super().deaf_woken(stand, woken)
