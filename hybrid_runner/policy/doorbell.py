"""When a worker looks into a queue and when it may sleep: interrupts while idle, polling under
load, as network drivers do it.

The modes of one worker on one queue:

DEAF     entered at the start and when the listener is lost. It looks when a poll, a timer or a free
         slot says so. Left when the
         listener hears again: everything quiet until then is found by falling asleep.
FALLING  entered from any mode with nothing left to do. It has lain down (holds the lock that says
         "somebody sleeps here") and
         opened the bell, so every insert from now on rings. An insert that was told to be quiet may
         still be in flight: it looks
         again until all transactions of that time have ended, and once more after the last, as a
         sweep. Left to ASLEEP then, to
         FULL, or to AWAKE if jobs come briskly. A ring for help starts the wait anew.
ASLEEP   entered from FALLING alone. The bell is open, every insert rings. Left to FALLING on a ring
         for help (a full worker undid
         its mute) and when a mute ran out whose owner died, to AWAKE if jobs come briskly, to FULL.
AWAKE    entered when jobs come briskly and from FULL when a slot comes free. It mutes the bell for
         a moment at a time and looks
         every few milliseconds. Left to FULL, and to FALLING when nothing comes any more.
FULL     entered when a look leaves no free slot. For a moment it just waits for a slot. Then it
         mutes the bell, and after that
         asks whether anybody sleeps; if so, the statement has opened the bell again and rung for
         help. Left to AWAKE by a slot.

Each transition is a function of one mode: it gets the answer to the last action and says what to do
next. Who calls it does one
thing at a time, and keeps what it hears meanwhile for the next `Wait`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import assert_never


class Mode(Enum):
    """See the top of this page."""

    DEAF = "deaf"
    FALLING = "falling"
    ASLEEP = "asleep"
    AWAKE = "awake"
    FULL = "full"


class Reason(IntEnum):
    """Why a worker stops waiting, weakest first. A stronger reason hides a weaker one."""

    PAUSE = 0  # the pause is over
    SLOT = 1  # a slot came free
    RING = 2  # an insert rang
    TIMER = 3  # a job that was known to come is due
    LATER = 4  # an insert rang for a job due soon: the timer has to be set
    SWEEP = 5  # the fallback poll, the start
    HELP = 6  # a full worker undid its mute, or cannot keep up
    EXPIRED = 7  # a mute ran out: its owner died
    LISTENER = 8  # the listener was lost, or is back

    @property
    def way(self) -> str:
        """The label of what a look for this reason finds."""
        return self.name.lower()


class Pause(Enum):
    """What ends a wait if nothing else does."""

    NEVER = "never"  # only a reason
    # awake, after a look that found something: none, unless they come so fast that a few may gather
    FOUND = "found"
    EMPTY = "empty"  # awake, after a look that found nothing
    FALLING = "falling"  # until the next look while transactions are in flight; longer each time
    FRESH = "fresh"  # full: short handlers will be done by then
    RENEWAL = "renewal"  # full and muted: until the mute is renewed


class MuteMode(Enum):
    """How a mute treats those who sleep."""

    LOOKING = "looking"  # it looks itself: let them sleep
    SATURATED = (  # it looks itself, and every look comes back full: ring for help, keep the mute
        "saturated"
    )
    FULL = "full"  # it does not look: if anybody sleeps, undo the mute and ring for help


# --- what a transition asks for


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a reason, lower the flag, answer Woken."""

    pause: Pause


@dataclass(frozen=True, slots=True)
class Look:
    """Claim what is due, as many as there are free slots; answer Looked. `sweep`: from the lane's
    start if its cost allows.
    """

    sweep: bool
    timer: bool = False
    """Ask before the look when the next job is due, and set the timer."""


@dataclass(frozen=True, slots=True)
class Mute:
    """Mute the bell for a moment; `rise`: give the sleeper's lock back before; answer Muted."""

    mute_mode: MuteMode
    drop_sleep_lock: bool


@dataclass(frozen=True, slots=True)
class Open:
    """Take the sleeper's lock if `lie_down`, then open the bell; answer Opened."""

    take_sleep_lock: bool


@dataclass(frozen=True, slots=True)
class MarkInFlight:
    """In a statement after that: a number above all transactions in flight; answer Witnessed."""


@dataclass(frozen=True, slots=True)
class Check:
    """Have all transactions below this number ended? Answer Checked."""

    below: int


Action = Wait | Look | Mute | Open | MarkInFlight | Check


# --- what it is answered


@dataclass(frozen=True, slots=True)
class Woken:
    """The wait is over."""

    reason: Reason
    hearing: bool = True
    free: bool = True
    later: bool = False
    """Among the reasons, hidden by a stronger one perhaps, was one for which the timer has to be
    set.
    """


@dataclass(frozen=True, slots=True)
class Looked:
    """The look is over."""

    found: bool
    full: bool
    """No free slot is left."""
    swept: bool
    """It went from the lane's start: nothing due is left behind, but what others have locked."""
    brisk: bool
    """Jobs come so fast that looking is cheaper than being rung for."""
    renew: bool = False
    """The mute is about to run out, or there is none."""
    saturated: bool = False
    """Looks keep coming back full."""


@dataclass(frozen=True, slots=True)
class Muted:
    """Whether somebody sleeps, in which case a FULL mute was undone."""

    undone: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """The bell is open."""


@dataclass(frozen=True, slots=True)
class Marked:
    """All transactions in flight have lower numbers."""

    below: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether all of them have ended."""

    ended: bool


@dataclass(frozen=True, slots=True)
class ListenerLost:
    """The listener's connection broke while it was used."""


Answer = Woken | Looked | Muted | Opened | Marked | Checked | ListenerLost


@dataclass(frozen=True, slots=True)
class BellState:
    """Where one worker stands with one queue."""

    mode: Mode = Mode.DEAF
    has_sleep_lock: bool = False
    """It holds the lock that says "somebody sleeps here"; on the listener's session, so that it
    ends with it.
    """
    below: int | None = None
    """FALLING: transactions below this may hold quiet inserts; None: all have ended."""
    fresh: bool = False
    """FULL: it has only just become full, and others have not been asked yet."""
    open: bool = False
    """FULL: somebody sleeps and the bell is open, so there is nothing to renew."""


Step = tuple[BellState, Action]

START: Step = (BellState(), Look(sweep=True, timer=True))


class Doorbell:
    """The transitions; `step` finds the one for a mode and an answer."""

    def step(self, state: BellState, answer: Answer) -> Step:
        """What to do after the last action was answered so."""
        match answer:
            case ListenerLost():
                return self.to_deaf()
            case Woken(hearing=False) if state.mode is not Mode.DEAF:
                return self.to_deaf()
            case Woken(reason=Reason.LISTENER) if state.mode is not Mode.DEAF:
                return self.to_falling(
                    BellState()
                )  # lost and back before we asked: the lock went with the old session
            case Woken():
                return self.woken(state, answer)
            case Looked():
                return self.looked(state, answer)
            case Muted(undone):
                return self.muted(state, undone=undone)
            case Opened():
                return replace(state, has_sleep_lock=True), MarkInFlight()
            case Marked(below):
                return replace(state, below=below), Check(below)
            case Checked(ended):
                return replace(state, below=None if ended else state.below), Look(
                    sweep=True, timer=True
                )
            case _:
                assert_never(answer)

    def woken(self, state: BellState, woken: Woken) -> Step:
        """A wait is over."""
        match state.mode:
            case Mode.DEAF:
                return self.deaf_woken(state, woken)
            case Mode.FALLING:
                return self.falling_woken(state, woken.reason)
            case Mode.ASLEEP:
                return self.asleep_woken(state, woken)
            case Mode.AWAKE:
                return state, Look(sweep=woken.reason >= Reason.SWEEP)
            case Mode.FULL:
                return self.full_woken(state, woken)
            case _:
                assert_never(state.mode)

    def looked(self, state: BellState, looked: Looked) -> Step:
        """A look is over."""
        if state.mode is Mode.DEAF:
            return state, Wait(Pause.NEVER)
        if looked.full:
            return self.to_full(state, looked)
        if looked.brisk:
            return self.to_awake(state, looked)
        match state.mode:
            case Mode.FALLING | Mode.ASLEEP:
                return self.asleep_if_nothing_is_left(state, looked)
            case Mode.AWAKE:
                return self.awake_looked(state, looked)
            case Mode.FULL:
                raise AssertionError("a full worker does not look")
            case _:
                assert_never(state.mode)

    # --- deaf

    def to_deaf(self) -> Step:
        """Nobody rings us any more; the lock went with the session. Whatever rang in vain is looked
        for at once.
        """
        return BellState(), Look(sweep=True, timer=True)

    def deaf_woken(self, state: BellState, woken: Woken) -> Step:
        """Look for any reason; once the listener hears, fall asleep in full."""
        if woken.hearing:
            return self.to_falling(state)
        return state, (
            Look(sweep=True, timer=woken.reason is not Reason.SLOT)
            if woken.free
            else Wait(Pause.NEVER)
        )

    # --- falling asleep

    def to_falling(self, state: BellState) -> Step:
        """Lie down, then open the bell: in this order, so that a full worker sees either the lock
        or the open bell.
        """
        return BellState(Mode.FALLING, has_sleep_lock=state.has_sleep_lock), Open(
            take_sleep_lock=not state.has_sleep_lock
        )

    def falling_woken(self, state: BellState, reason: Reason) -> Step:
        """Ask again who is in flight if a mute was undone, else whether they have ended."""
        if reason is Reason.EXPIRED:
            return self.to_falling(state)
        if reason is Reason.HELP:
            return state, MarkInFlight()
        return state, Look(sweep=True, timer=True) if state.below is None else Check(state.below)

    def asleep_if_nothing_is_left(self, state: BellState, looked: Looked) -> Step:
        """Asleep means: nobody is in flight, and a sweep after the last of them left nothing.
        Finding jobs proves neither.
        """
        if state.below is None and looked.swept:
            return BellState(Mode.ASLEEP, has_sleep_lock=True), Wait(Pause.NEVER)
        return replace(state, mode=Mode.FALLING), Wait(Pause.FALLING)

    # --- asleep

    def asleep_woken(self, state: BellState, woken: Woken) -> Step:
        """Look for any reason; an insert that was quiet under a mute now undone or run out may
        still be in flight.
        """
        if woken.reason is Reason.EXPIRED:
            return self.to_falling(state)
        if woken.reason is Reason.HELP:
            return replace(state, mode=Mode.FALLING), MarkInFlight()
        return state, Look(
            sweep=True, timer=woken.later or woken.reason in (Reason.TIMER, Reason.LATER)
        )

    # --- awake

    def to_awake(self, state: BellState, looked: Looked) -> Step:
        """Keep looking; the first mute comes with it."""
        return self.awake_looked(BellState(Mode.AWAKE, has_sleep_lock=state.has_sleep_lock), looked)

    def awake_looked(self, state: BellState, looked: Looked) -> Step:
        """Mute when it is time, look again after a find, pause after none, fall asleep when nothing
        comes.
        """
        if not looked.brisk and not looked.found:
            return self.to_falling(state)
        if looked.renew and looked.brisk:
            return self.mute(state, looked)
        return state, Wait(Pause.FOUND if looked.found else Pause.EMPTY)

    # --- full

    def to_full(self, state: BellState, looked: Looked) -> Step:
        """Give short handlers a moment before anybody else is told. Under load that is all of being
        full: then the mute goes on.
        """
        state = BellState(Mode.FULL, has_sleep_lock=state.has_sleep_lock, fresh=True)
        return (
            self.mute(state, looked)
            if looked.renew and looked.brisk
            else (state, Wait(Pause.FRESH))
        )

    def full_woken(self, state: BellState, woken: Woken) -> Step:
        """A slot: look at once. A job is due, or the mute ends: mute and ask whether anybody
        sleeps.
        """
        if woken.free:
            return BellState(Mode.AWAKE, has_sleep_lock=state.has_sleep_lock), Look(sweep=False)
        if state.fresh and woken.reason is not Reason.PAUSE:
            return state, Wait(Pause.FRESH)  # what is left of the moment
        if state.open and woken.reason is not Reason.TIMER:
            return state, Wait(Pause.NEVER)
        return replace(state, has_sleep_lock=False, fresh=False), Mute(
            MuteMode.FULL, drop_sleep_lock=state.has_sleep_lock
        )

    # --- awake or full

    def mute(self, state: BellState, looked: Looked) -> Step:
        """It looks itself, or will in a moment: no need for rings, but perhaps for help."""
        mute_mode = MuteMode.SATURATED if looked.saturated else MuteMode.LOOKING
        return replace(state, has_sleep_lock=False), Mute(
            mute_mode, drop_sleep_lock=state.has_sleep_lock
        )

    def muted(self, state: BellState, *, undone: bool) -> Step:
        """Awake: look on. Full: keep the mute for its time, or leave the queue to those who
        slept.
        """
        if state.mode is Mode.AWAKE:
            return state, Look(sweep=False)
        if state.fresh:
            return state, Wait(Pause.FRESH)
        return replace(state, open=undone), Wait(Pause.NEVER if undone else Pause.RENEWAL)
