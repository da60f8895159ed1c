"""The doorbell's transitions as a table: where a worker stands, what it is told, where it stands
then, what it does next.
"""

from __future__ import annotations

import pytest

from hybrid_runner.policy.doorbell import (
    START,
    Action,
    Answer,
    BellState,
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

DEAF = BellState(Mode.DEAF)
LYING = BellState(Mode.FALLING, is_sleeper=True)
WAITING = BellState(Mode.FALLING, is_sleeper=True, below=7)
ASLEEP = BellState(Mode.ASLEEP, is_sleeper=True)
AWAKE = BellState(Mode.AWAKE)
FRESH = BellState(Mode.FULL, fresh=True)
MUTING = BellState(Mode.FULL)
LEFT_OPEN = BellState(Mode.FULL, open=True)

SWEEP = Look(sweep=True)
SWEEP_AND_TIMER = Look(sweep=True, timer=True)
LOOK = Look(sweep=False)
GET_UP_AND_LOOK_ALONE = Mute(MuteMode.LOOKING, leave_sleepers=True)

Row = tuple[BellState, Answer, BellState, Action]


def woken(reason: Reason, *, free: bool = True) -> Woken:
    return Woken(reason, free=free)


def looked(*, found: bool = False, swept: bool = True, **more: bool) -> Looked:
    return Looked(found=found, swept=swept, **{"full": False, "brisk": False, **more})


def is_sleeper(state: BellState) -> BellState:
    """The same, and its row of sleepers still says that it sleeps."""
    return BellState(state.mode, is_sleeper=True, fresh=state.fresh)


ROWS: dict[str, list[Row]] = {
    "deaf, it looks when a poll, a timer or a free slot says so": [
        (DEAF, looked(found=True, full=True, brisk=True), DEAF, Wait(Pause.NEVER)),
        (DEAF, Woken(Reason.SWEEP, hearing=False), DEAF, SWEEP_AND_TIMER),
        (DEAF, Woken(Reason.TIMER, hearing=False), DEAF, SWEEP_AND_TIMER),
        (DEAF, Woken(Reason.SLOT, hearing=False), DEAF, SWEEP),
        (DEAF, Woken(Reason.SWEEP, hearing=False, free=False), DEAF, Wait(Pause.NEVER)),
    ],
    "once it hears, it falls asleep in full": [
        (DEAF, woken(Reason.LISTENER), BellState(Mode.FALLING), Open(join_sleepers=True)),
    ],
    "whoever loses the listener is deaf, and no sleeper": [
        (WAITING, ListenerLost(), DEAF, SWEEP_AND_TIMER),
        (ASLEEP, Woken(Reason.LISTENER, hearing=False), DEAF, SWEEP_AND_TIMER),
        (AWAKE, ListenerLost(), DEAF, SWEEP_AND_TIMER),
        (MUTING, Woken(Reason.PAUSE, hearing=False, free=False), DEAF, SWEEP_AND_TIMER),
    ],
    "whose listener is back before anybody asked is no sleeper either": [
        (ASLEEP, woken(Reason.LISTENER), BellState(Mode.FALLING), Open(join_sleepers=True)),
        (
            LEFT_OPEN,
            woken(Reason.LISTENER, free=False),
            BellState(Mode.FALLING),
            Open(join_sleepers=True),
        ),
    ],
    "falling asleep: lie down, open, ask who is in flight, ask until they ended, sweep": [
        (AWAKE, looked(), BellState(Mode.FALLING), Open(join_sleepers=True)),
        (BellState(Mode.FALLING), Opened(), LYING, MarkInFlight()),
        (LYING, Marked(7), WAITING, Check(7)),
        (WAITING, Checked(ended=False), WAITING, SWEEP_AND_TIMER),
        (WAITING, looked(), WAITING, Wait(Pause.FALLING)),
        (WAITING, woken(Reason.PAUSE), WAITING, Check(7)),
        (WAITING, Checked(ended=True), LYING, SWEEP_AND_TIMER),
        (LYING, looked(), ASLEEP, Wait(Pause.NEVER)),
    ],
    "a look that finds jobs, or was no sweep, does not end it": [
        (WAITING, looked(found=True), WAITING, Wait(Pause.FALLING)),
        (LYING, looked(swept=False), LYING, Wait(Pause.FALLING)),
        (LYING, woken(Reason.PAUSE), LYING, SWEEP_AND_TIMER),
        (LYING, looked(found=True), ASLEEP, Wait(Pause.NEVER)),
    ],
    "falling asleep, a ring is no reason to skip the wait": [
        (WAITING, woken(Reason.RING), WAITING, Check(7)),
    ],
    "a mute that was undone may have kept somebody quiet: ask again who is in flight": [
        (WAITING, woken(Reason.HELP), WAITING, MarkInFlight()),
        (ASLEEP, woken(Reason.HELP), LYING, MarkInFlight()),
    ],
    "a mute that ran out is still to be opened": [
        (WAITING, woken(Reason.EXPIRED), LYING, Open(join_sleepers=False)),
        (ASLEEP, woken(Reason.EXPIRED), LYING, Open(join_sleepers=False)),
    ],
    "asleep, it looks for any reason and stays asleep": [
        (ASLEEP, woken(Reason.RING), ASLEEP, SWEEP),
        (ASLEEP, woken(Reason.SLOT), ASLEEP, SWEEP),
        (ASLEEP, woken(Reason.TIMER), ASLEEP, SWEEP_AND_TIMER),
        (ASLEEP, woken(Reason.LATER), ASLEEP, SWEEP_AND_TIMER),
        (ASLEEP, woken(Reason.SWEEP), ASLEEP, SWEEP_AND_TIMER),
        (ASLEEP, looked(found=True), ASLEEP, Wait(Pause.NEVER)),
    ],
    "a look that left something behind cannot be the last": [
        (ASLEEP, looked(swept=False), LYING, Wait(Pause.FALLING)),
    ],
    "when jobs come briskly, it gets up": [
        (ASLEEP, looked(found=True, brisk=True, renew=True), AWAKE, GET_UP_AND_LOOK_ALONE),
        (WAITING, looked(found=True, brisk=True, renew=True), AWAKE, GET_UP_AND_LOOK_ALONE),
        (ASLEEP, looked(found=True, brisk=True), is_sleeper(AWAKE), Wait(Pause.FOUND)),
    ],
    "awake, it mutes now and then, and looks": [
        (AWAKE, looked(found=True, brisk=True), AWAKE, Wait(Pause.FOUND)),
        (AWAKE, looked(brisk=True), AWAKE, Wait(Pause.EMPTY)),
        (
            AWAKE,
            looked(brisk=True, renew=True),
            AWAKE,
            Mute(MuteMode.LOOKING, leave_sleepers=False),
        ),
        (
            AWAKE,
            looked(brisk=True, renew=True, saturated=True),
            AWAKE,
            Mute(MuteMode.SATURATED, leave_sleepers=False),
        ),
        (AWAKE, Muted(undone=False), AWAKE, LOOK),
        (AWAKE, woken(Reason.PAUSE), AWAKE, LOOK),
        (AWAKE, woken(Reason.RING), AWAKE, LOOK),
        (AWAKE, woken(Reason.SWEEP), AWAKE, SWEEP),
    ],
    "awake, it looks once more after the last find, and does not mute for it": [
        (AWAKE, looked(found=True, renew=True), AWAKE, Wait(Pause.FOUND)),
        (is_sleeper(AWAKE), looked(), LYING, Open(join_sleepers=False)),
    ],
    "without a free slot it waits a moment before it asks anybody": [
        (ASLEEP, looked(found=True, full=True), is_sleeper(FRESH), Wait(Pause.FRESH)),
        (WAITING, looked(full=True), is_sleeper(FRESH), Wait(Pause.FRESH)),
        (AWAKE, looked(found=True, full=True, brisk=True), FRESH, Wait(Pause.FRESH)),
    ],
    "under load the mute goes on meanwhile": [
        (
            AWAKE,
            looked(found=True, full=True, brisk=True, renew=True),
            FRESH,
            Mute(MuteMode.LOOKING, leave_sleepers=False),
        ),
        (
            ASLEEP,
            looked(found=True, full=True, brisk=True, renew=True),
            FRESH,
            GET_UP_AND_LOOK_ALONE,
        ),
        (FRESH, Muted(undone=False), FRESH, Wait(Pause.FRESH)),
    ],
    "then it mutes, and asks whether anybody sleeps": [
        (
            is_sleeper(FRESH),
            woken(Reason.PAUSE, free=False),
            MUTING,
            Mute(MuteMode.FULL, leave_sleepers=True),
        ),
        (
            FRESH,
            woken(Reason.PAUSE, free=False),
            MUTING,
            Mute(MuteMode.FULL, leave_sleepers=False),
        ),
    ],
    "if nobody does, it renews the mute; if somebody does, the bell is open and theirs": [
        (MUTING, Muted(undone=False), MUTING, Wait(Pause.RENEWAL)),
        (
            MUTING,
            woken(Reason.PAUSE, free=False),
            MUTING,
            Mute(MuteMode.FULL, leave_sleepers=False),
        ),
        (MUTING, Muted(undone=True), LEFT_OPEN, Wait(Pause.NEVER)),
        (LEFT_OPEN, woken(Reason.RING, free=False), LEFT_OPEN, Wait(Pause.NEVER)),
        (
            LEFT_OPEN,
            woken(Reason.TIMER, free=False),
            LEFT_OPEN,
            Mute(MuteMode.FULL, leave_sleepers=False),
        ),
    ],
    "a free slot looks at once": [
        (FRESH, woken(Reason.SLOT), AWAKE, LOOK),
        (is_sleeper(FRESH), woken(Reason.SLOT), is_sleeper(AWAKE), LOOK),
        (MUTING, woken(Reason.SLOT), AWAKE, LOOK),
        (LEFT_OPEN, woken(Reason.PAUSE), AWAKE, LOOK),
    ],
}


@pytest.mark.parametrize(
    ("state", "answer", "after", "action"),
    [
        pytest.param(*row, id=f"{law} {number}")
        for law, rows in ROWS.items()
        for number, row in enumerate(rows, 1)
    ],
)
def test_step(state: BellState, answer: Answer, after: BellState, action: Action) -> None:
    assert Doorbell().step(state, answer) == (after, action)


def test_it_starts_deaf_with_a_sweep() -> None:
    assert START == (DEAF, SWEEP_AND_TIMER)


def test_a_full_worker_that_says_it_looked_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        Doorbell().step(MUTING, looked())
