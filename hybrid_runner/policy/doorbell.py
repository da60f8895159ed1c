"""When a worker looks for jobs of a queue and when it may sleep.

Interrupts while idle, polling under load, as network drivers do it.

The modes of one worker on one queue:

DEAF     entered at the start and when the listener is lost. It looks when a poll, a timer or a free
         slot says so, and every few milliseconds while jobs come briskly. Left when the listener
         hears again: falling asleep finds all that was inserted without a ring until then.
FALLING  entered from any mode with nothing left to do. It is in the table of sleepers, and has
         opened the bell, so every insert from now on rings. An insert that was muted may still be
         in flight: it looks again until all transactions of that time have ended, and once more
         after the last, as a sweep. Left to ASLEEP then, to FULL, or to AWAKE if jobs come
         briskly. A ring for help starts the wait anew.
ASLEEP   entered from FALLING alone. The bell is open, every insert rings. Left to FALLING on a ring
         for help (a full worker undid its mute) and when a mute ran out whose owner died, to AWAKE
         if jobs come briskly, to FULL.
AWAKE    entered when jobs come briskly and from FULL when a slot comes free. It mutes the bell for
         a moment at a time and looks every few milliseconds. Left to FULL, and to FALLING when
         nothing comes any more.
FULL     entered when a look leaves no free slot. For a moment it just waits for a slot. Then it
         mutes the bell, and after that asks whether anybody sleeps; if so, the statement has opened
         the bell again and rung for help. Left to AWAKE by a slot.

Each transition is a function of one mode: it gets the answer to the last action and says what to do
next. The caller does one thing at a time, and keeps what it hears meanwhile for the next `Wait`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import assert_never


class Mode(Enum):
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
    FOUND = "found"  # awake, after a look that found jobs: 0 unless jobs come very fast
    EMPTY = "empty"  # awake, after a look that found nothing
    FALLING = "falling"  # until the next look while transactions are in flight; longer each time
    FRESH = "fresh"  # full: short handlers will be done by then
    RENEWAL = "renewal"  # full and muted: until the mute is renewed


class MuteMode(Enum):
    """What a mute means for the workers that sleep."""

    LOOKING = "looking"  # the muting worker looks: let them sleep
    SATURATED = "saturated"  # it looks, and is always full: ring for help, keep the mute
    FULL = "full"  # it does not look: if anybody sleeps, undo the mute and ring for help


# --- what a transition asks for


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a reason, lower the flag, answer Woken."""

    pause: Pause


@dataclass(frozen=True, slots=True)
class Look:
    """Claim due jobs, as many as there are free slots; answer Looked. `sweep`: from the start of
    the lanes if the cost allows it.
    """

    sweep: bool
    timer: bool = False
    """Before the look, ask when the next job is due and set the timer."""


@dataclass(frozen=True, slots=True)
class Mute:
    """Mute the bell for a moment, and leave the table of sleepers if asked to; answer Muted."""

    mute_mode: MuteMode
    leave_sleepers: bool


@dataclass(frozen=True, slots=True)
class Open:
    """Open the bell, after joining the table of sleepers if asked to; answer Opened."""

    join_sleepers: bool


@dataclass(frozen=True, slots=True)
class MarkInFlight:
    """After `Open`, in a statement of its own: get a number above all transactions in flight;
    answer Marked.
    """


@dataclass(frozen=True, slots=True)
class Check:
    """Ask whether all transactions below this number have ended; answer Checked."""

    below: int


Action = Wait | Look | Mute | Open | MarkInFlight | Check


# --- what it is answered


@dataclass(frozen=True, slots=True)
class Woken:
    reason: Reason
    hearing: bool = True
    free: bool = True
    later: bool = False
    """Whether one of the reasons, perhaps hidden by a stronger one, asks to set the timer."""


@dataclass(frozen=True, slots=True)
class Looked:
    found: bool
    full: bool
    """No free slot is left."""
    swept: bool
    """It read the lanes from their start: no due job is left but those that others have locked."""
    brisk: bool  # jobs come so fast that looking is cheaper than being rung for
    renew: bool = False
    """The mute is about to run out, or there is none."""
    saturated: bool = False
    """Looks keep coming back full."""


@dataclass(frozen=True, slots=True)
class Muted:
    """The mute was set; `undone`: somebody sleeps, and a FULL mute was undone."""

    undone: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """The bell is open."""


@dataclass(frozen=True, slots=True)
class Marked:
    """All transactions in flight have numbers below this."""

    below: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether all transactions below the number have ended."""

    ended: bool


@dataclass(frozen=True, slots=True)
class ListenerLost:
    """The listener's connection broke while it was used."""


Answer = Woken | Looked | Muted | Opened | Marked | Checked | ListenerLost


@dataclass(frozen=True, slots=True)
class BellState:
    """The state of one worker on one queue."""

    mode: Mode = Mode.DEAF
    is_sleeper: bool = False
    """The table of sleepers has it. Its row there names the listener's session, and counts for as
    long as that lasts.
    """
    below: int | None = None
    """FALLING: transactions below this number may hold muted inserts; None: all have ended."""
    fresh: bool = False
    """FULL: it has just become full, and has not asked yet whether anybody sleeps."""
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
                # Lost and back before the worker noticed: the row was the old session's.
                return self.to_falling(BellState())
            case Woken():
                return self.woken(state, answer)
            case Looked():
                return self.looked(state, answer)
            case Muted(undone):
                return self.muted(state, undone=undone)
            case Opened():
                return replace(state, is_sleeper=True), MarkInFlight()
            case Marked(below):
                return replace(state, below=below), Check(below)
            case Checked(ended):
                return replace(state, below=None if ended else state.below), Look(
                    sweep=True, timer=True
                )
            case _:
                assert_never(answer)

    def woken(self, state: BellState, woken: Woken) -> Step:
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
        if state.mode is Mode.DEAF:
            return self.deaf_looked(state, looked)
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
        """No ring can be heard, and the row of sleepers ended with the session. Look at once for
        jobs whose rings were lost.
        """
        return BellState(), Look(sweep=True, timer=True)

    def deaf_woken(self, state: BellState, woken: Woken) -> Step:
        """Look for any reason; once the listener hears, fall asleep from the first step on."""
        if woken.hearing:
            return self.to_falling(state)
        if not woken.free:
            return state, Wait(Pause.NEVER)
        if woken.reason is Reason.PAUSE:
            return state, Look(sweep=False)
        return state, Look(sweep=True, timer=woken.reason is not Reason.SLOT)

    def deaf_looked(self, state: BellState, looked: Looked) -> Step:
        """Keep looking while jobs come briskly, as when awake, but mute nothing: others hear."""
        if looked.full or not looked.brisk:
            return state, Wait(Pause.NEVER)
        return state, Wait(Pause.FOUND if looked.found else Pause.EMPTY)

    # --- falling asleep

    def to_falling(self, state: BellState) -> Step:
        """Join the table of sleepers, then open the bell: in this order, so that a full worker,
        which mutes the bell and then reads the table, sees the row, or its mute is undone.
        """
        return BellState(Mode.FALLING, is_sleeper=state.is_sleeper), Open(
            join_sleepers=not state.is_sleeper
        )

    def falling_woken(self, state: BellState, reason: Reason) -> Step:
        """If a mute was undone, mark anew what is in flight; else ask whether all has ended."""
        if reason is Reason.EXPIRED:
            return self.to_falling(state)
        if reason is Reason.HELP:
            return state, MarkInFlight()
        return state, Look(sweep=True, timer=True) if state.below is None else Check(state.below)

    def asleep_if_nothing_is_left(self, state: BellState, looked: Looked) -> Step:
        """Asleep means: no muted insert is in flight, and a sweep after the last one left nothing.
        That a look found jobs proves neither.
        """
        if state.below is None and looked.swept:
            return BellState(Mode.ASLEEP, is_sleeper=True), Wait(Pause.NEVER)
        return replace(state, mode=Mode.FALLING), Wait(Pause.FALLING)

    # --- asleep

    def asleep_woken(self, state: BellState, woken: Woken) -> Step:
        """Look for any reason; if a mute was undone or ran out, an insert that it muted may be in
        flight.
        """
        if woken.reason is Reason.EXPIRED:
            return self.to_falling(state)
        if woken.reason is Reason.HELP:
            return replace(state, mode=Mode.FALLING), MarkInFlight()
        sets_timer = woken.reason in (Reason.TIMER, Reason.LATER, Reason.SWEEP)
        return state, Look(sweep=True, timer=woken.later or sets_timer)

    # --- awake

    def to_awake(self, state: BellState, looked: Looked) -> Step:
        """Keep looking, and set the first mute."""
        return self.awake_looked(BellState(Mode.AWAKE, is_sleeper=state.is_sleeper), looked)

    def awake_looked(self, state: BellState, looked: Looked) -> Step:
        """Renew the mute when it is time, else pause until the next look; fall asleep when jobs no
        longer come.
        """
        if not looked.brisk and not looked.found:
            return self.to_falling(state)
        if looked.renew and looked.brisk:
            return self.mute(state, looked)
        return state, Wait(Pause.FOUND if looked.found else Pause.EMPTY)

    # --- full

    def to_full(self, state: BellState, looked: Looked) -> Step:
        """Give short handlers a moment to end before anybody is asked for help; under load that is
        usually enough, so the mute is renewed meanwhile.
        """
        state = BellState(Mode.FULL, is_sleeper=state.is_sleeper, fresh=True)
        if looked.renew and looked.brisk:
            return self.mute(state, looked)
        return state, Wait(Pause.FRESH)

    def full_woken(self, state: BellState, woken: Woken) -> Step:
        """A slot is free: look at once. A job is due, or the mute ends: mute and ask whether
        anybody sleeps.
        """
        if woken.free:
            return BellState(Mode.AWAKE, is_sleeper=state.is_sleeper), Look(sweep=False)
        if state.fresh and woken.reason is not Reason.PAUSE:
            return state, Wait(Pause.FRESH)  # what is left of the moment
        if state.open and woken.reason is not Reason.TIMER:
            return state, Wait(Pause.NEVER)
        return replace(state, is_sleeper=False, fresh=False), Mute(
            MuteMode.FULL, leave_sleepers=state.is_sleeper
        )

    # --- awake or full

    def mute(self, state: BellState, looked: Looked) -> Step:
        """This worker looks, or will in a moment: it needs no rings, but perhaps help."""
        mute_mode = MuteMode.SATURATED if looked.saturated else MuteMode.LOOKING
        return replace(state, is_sleeper=False), Mute(mute_mode, leave_sleepers=state.is_sleeper)

    def muted(self, state: BellState, *, undone: bool) -> Step:
        """Awake: look on. Full: keep the mute for its time, or leave the queue to those
        that slept.
        """
        if state.mode is Mode.AWAKE:
            return state, Look(sweep=False)
        if state.fresh:
            return state, Wait(Pause.FRESH)
        return replace(state, open=undone), Wait(Pause.NEVER if undone else Pause.RENEWAL)
