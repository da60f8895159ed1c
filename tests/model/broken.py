"""Doorbells that drop one rule each."""

from __future__ import annotations

from dataclasses import replace

from hybrid_runner.policy.doorbell import (
    Answer,
    BellState,
    Doorbell,
    Look,
    Looked,
    Marked,
    Mode,
    Mute,
    MuteMode,
    Open,
    Pause,
    Reason,
    Step,
    Wait,
    Woken,
)


class WaitsForNobody(Doorbell):
    """Transactions in flight are taken for ended."""

    def step(self, state: BellState, answer: Answer) -> Step:
        if isinstance(answer, Marked):
            return replace(state, below=None), Look(sweep=True, timer=True)
        return super().step(state, answer)


class FindsAndSleeps(Doorbell):
    """A look that finds jobs ends the wait."""

    def asleep_if_nothing_is_left(self, state: BellState, looked: Looked) -> Step:
        return super().asleep_if_nothing_is_left(
            replace(state, below=None) if looked.found else state, looked
        )


class SleepsAfterAnyLook(Doorbell):
    """A look that was no sweep will do."""

    def asleep_if_nothing_is_left(self, state: BellState, looked: Looked) -> Step:
        return super().asleep_if_nothing_is_left(state, replace(looked, swept=True))


class AsksNobody(Doorbell):
    """Full, it mutes the bell as if it would look itself."""

    def full_woken(self, state: BellState, woken: Woken) -> Step:
        after, action = super().full_woken(state, woken)
        return after, replace(action, mute_mode=MuteMode.LOOKING) if isinstance(
            action, Mute
        ) else action


class HelpsLikeAnyRing(Doorbell):
    """A ring for help causes a look and nothing else."""

    def falling_woken(self, state: BellState, reason: Reason) -> Step:
        return super().falling_woken(state, Reason.RING if reason is Reason.HELP else reason)

    def asleep_woken(self, state: BellState, woken: Woken) -> Step:
        return super().asleep_woken(
            state, replace(woken, reason=Reason.RING) if woken.reason is Reason.HELP else woken
        )


class IgnoresMutesThatRanOut(Doorbell):
    """Asleep, it does not care that the owner of a mute died."""

    def asleep_woken(self, state: BellState, woken: Woken) -> Step:
        return (
            (state, Wait(Pause.NEVER))
            if woken.reason is Reason.EXPIRED
            else super().asleep_woken(state, woken)
        )


class TrustsTheOldRow(Doorbell):
    """The listener was lost and is back: it believes that its row of sleepers still counts."""

    def step(self, state: BellState, answer: Answer) -> Step:
        if isinstance(answer, Woken) and answer.hearing and state.mode is not Mode.DEAF:
            return self.woken(state, answer)
        return super().step(state, answer)


class StaysAsleepWhenDeaf(Doorbell):
    """The listener is back: it goes on as if every ring had been heard."""

    def deaf_woken(self, state: BellState, woken: Woken) -> Step:
        if woken.hearing:
            return BellState(Mode.ASLEEP, is_sleeper=True), Wait(Pause.NEVER)
        return super().deaf_woken(state, woken)


class NeverJoins(Doorbell):
    """It falls asleep as if its row were written already."""

    def to_falling(self, state: BellState) -> Step:
        after, action = super().to_falling(state)
        return after, replace(action, join_sleepers=False) if isinstance(action, Open) else action
