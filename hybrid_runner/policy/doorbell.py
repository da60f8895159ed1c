"""When a worker looks into a queue and when it may sleep: interrupts while idle, polling under load, as network drivers do it.

The modes of one worker on one queue:

DEAF     entered at the start and when the listener is lost. It looks when a poll, a timer or a free slot says so. Left when the
         listener hears again: everything quiet until then is found by falling asleep.
FALLING  entered from any mode with nothing left to do. It has lain down (holds the lock that says "somebody sleeps here") and
         opened the bell, so every insert from now on rings. An insert that was told to be quiet may still be in flight: it looks
         again until all transactions of that time have ended, and once more after the last, as a sweep. Left to ASLEEP then, to
         FULL, or to AWAKE if jobs come briskly. A ring for help starts the wait anew.
ASLEEP   entered from FALLING alone. The bell is open, every insert rings. Left to FALLING on a ring for help (a full worker undid
         its mute) and when a mute ran out whose owner died, to AWAKE if jobs come briskly, to FULL.
AWAKE    entered when jobs come briskly and from FULL when a slot comes free. It mutes the bell for a moment at a time and looks
         every few milliseconds. Left to FULL, and to FALLING when nothing comes any more.
FULL     entered when a look leaves no free slot. For a moment it just waits for a slot. Then it mutes the bell, and after that
         asks whether anybody sleeps; if so, the statement has opened the bell again and rung for help. Left to AWAKE by a slot.

Each transition is a function of one mode: it gets the answer to the last action and says what to do next. Who calls it does one
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
    FOUND = "found"  # awake, after a look that found something: none, unless they come so fast that a few may gather
    EMPTY = "empty"  # awake, after a look that found nothing
    FALLING = "falling"  # until the next look while transactions are in flight; longer each time
    FRESH = "fresh"  # full: short handlers will be done by then
    RENEWAL = "renewal"  # full and muted: until the mute is renewed


class Manner(Enum):
    """How a mute treats those who sleep."""

    LOOKING = "looking"  # it looks itself: let them sleep
    SATURATED = "saturated"  # it looks itself, and every look comes back full: ring for help, keep the mute
    FULL = "full"  # it does not look: if anybody sleeps, undo the mute and ring for help


# --- what a transition asks for


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a reason, lower the flag, answer Woken."""

    pause: Pause


@dataclass(frozen=True, slots=True)
class Look:
    """Claim what is due, as many as there are free slots; answer Looked. `sweep`: from the lane's start if its cost allows."""

    sweep: bool
    timer: bool = False
    """Ask before the look when the next job is due, and set the timer."""


@dataclass(frozen=True, slots=True)
class Mute:
    """Mute the bell for a moment; `rise`: give the sleeper's lock back before; answer Muted."""

    manner: Manner
    rise: bool


@dataclass(frozen=True, slots=True)
class Open:
    """Take the sleeper's lock if `lie_down`, then open the bell; answer Opened."""

    lie_down: bool


@dataclass(frozen=True, slots=True)
class Witness:
    """In a statement after that: a number above all transactions in flight; answer Witnessed."""


@dataclass(frozen=True, slots=True)
class Check:
    """Have all transactions below this number ended? Answer Checked."""

    below: int


Action = Wait | Look | Mute | Open | Witness | Check


# --- what it is answered


@dataclass(frozen=True, slots=True)
class Woken:
    """The wait is over."""

    reason: Reason
    hearing: bool = True
    free: bool = True
    later: bool = False
    """Among the reasons, hidden by a stronger one perhaps, was one for which the timer has to be set."""


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
class Witnessed:
    """All transactions in flight have lower numbers."""

    below: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether all of them have ended."""

    ended: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """The listener's connection broke while it was used."""


Answer = Woken | Looked | Muted | Opened | Witnessed | Checked | Lost


@dataclass(frozen=True, slots=True)
class Stand:
    """Where one worker stands with one queue."""

    mode: Mode = Mode.DEAF
    lying: bool = False
    """It holds the lock that says "somebody sleeps here"; on the listener's session, so that it ends with it."""
    below: int | None = None
    """FALLING: transactions below this may hold quiet inserts; None: all have ended."""
    fresh: bool = False
    """FULL: it has only just become full, and others have not been asked yet."""
    open: bool = False
    """FULL: somebody sleeps and the bell is open, so there is nothing to renew."""


Step = tuple[Stand, Action]

START: Step = (Stand(), Look(sweep=True, timer=True))


class Doorbell:
    """The transitions; `step` finds the one for a mode and an answer."""

    def step(self, stand: Stand, answer: Answer) -> Step:
        """What to do after the last action was answered so."""
        match answer:
            case Lost():
                return self.to_deaf()
            case Woken(hearing=False) if stand.mode is not Mode.DEAF:
                return self.to_deaf()
            case Woken(reason=Reason.LISTENER) if stand.mode is not Mode.DEAF:
                return self.to_falling(Stand())  # lost and back before we asked: the lock went with the old session
            case Woken():
                return self.woken(stand, answer)
            case Looked():
                return self.looked(stand, answer)
            case Muted(undone):
                return self.muted(stand, undone=undone)
            case Opened():
                return replace(stand, lying=True), Witness()
            case Witnessed(below):
                return replace(stand, below=below), Check(below)
            case Checked(ended):
                return replace(stand, below=None if ended else stand.below), Look(sweep=True, timer=True)
            case _:
                assert_never(answer)

    def woken(self, stand: Stand, woken: Woken) -> Step:
        """A wait is over."""
        match stand.mode:
            case Mode.DEAF:
                return self.deaf_woken(stand, woken)
            case Mode.FALLING:
                return self.falling_woken(stand, woken.reason)
            case Mode.ASLEEP:
                return self.asleep_woken(stand, woken)
            case Mode.AWAKE:
                return stand, Look(sweep=woken.reason >= Reason.SWEEP)
            case Mode.FULL:
                return self.full_woken(stand, woken)
            case _:
                assert_never(stand.mode)

    def looked(self, stand: Stand, looked: Looked) -> Step:
        """A look is over."""
        if stand.mode is Mode.DEAF:
            return stand, Wait(Pause.NEVER)
        if looked.full:
            return self.to_full(stand, looked)
        if looked.brisk:
            return self.to_awake(stand, looked)
        match stand.mode:
            case Mode.FALLING | Mode.ASLEEP:
                return self.asleep_if_nothing_is_left(stand, looked)
            case Mode.AWAKE:
                return self.awake_looked(stand, looked)
            case Mode.FULL:
                raise AssertionError("a full worker does not look")
            case _:
                assert_never(stand.mode)

    # --- deaf

    def to_deaf(self) -> Step:
        """Nobody rings us any more; the lock went with the session. Whatever rang in vain is looked for at once."""
        return Stand(), Look(sweep=True, timer=True)

    def deaf_woken(self, stand: Stand, woken: Woken) -> Step:
        """Look for any reason; once the listener hears, fall asleep in full."""
        if woken.hearing:
            return self.to_falling(stand)
        return stand, Look(sweep=True, timer=woken.reason is not Reason.SLOT) if woken.free else Wait(Pause.NEVER)

    # --- falling asleep

    def to_falling(self, stand: Stand) -> Step:
        """Lie down, then open the bell: in this order, so that a full worker sees either the lock or the open bell."""
        return Stand(Mode.FALLING, lying=stand.lying), Open(lie_down=not stand.lying)

    def falling_woken(self, stand: Stand, reason: Reason) -> Step:
        """Ask again who is in flight if a mute was undone, else whether they have ended."""
        if reason is Reason.EXPIRED:
            return self.to_falling(stand)
        if reason is Reason.HELP:
            return stand, Witness()
        return stand, Look(sweep=True, timer=True) if stand.below is None else Check(stand.below)

    def asleep_if_nothing_is_left(self, stand: Stand, looked: Looked) -> Step:
        """Asleep means: nobody is in flight, and a sweep after the last of them left nothing. Finding jobs proves neither."""
        if stand.below is None and looked.swept:
            return Stand(Mode.ASLEEP, lying=True), Wait(Pause.NEVER)
        return replace(stand, mode=Mode.FALLING), Wait(Pause.FALLING)

    # --- asleep

    def asleep_woken(self, stand: Stand, woken: Woken) -> Step:
        """Look for any reason; an insert that was quiet under a mute now undone or run out may still be in flight."""
        if woken.reason is Reason.EXPIRED:
            return self.to_falling(stand)
        if woken.reason is Reason.HELP:
            return replace(stand, mode=Mode.FALLING), Witness()
        return stand, Look(sweep=True, timer=woken.later or woken.reason in (Reason.TIMER, Reason.LATER))

    # --- awake

    def to_awake(self, stand: Stand, looked: Looked) -> Step:
        """Keep looking; the first mute comes with it."""
        return self.awake_looked(Stand(Mode.AWAKE, lying=stand.lying), looked)

    def awake_looked(self, stand: Stand, looked: Looked) -> Step:
        """Mute when it is time, look again after a find, pause after none, fall asleep when nothing comes."""
        if not looked.brisk and not looked.found:
            return self.to_falling(stand)
        if looked.renew and looked.brisk:
            return self.mute(stand, looked)
        return stand, Wait(Pause.FOUND if looked.found else Pause.EMPTY)

    # --- full

    def to_full(self, stand: Stand, looked: Looked) -> Step:
        """Give short handlers a moment before anybody else is told. Under load that is all of being full: then the mute goes on."""
        stand = Stand(Mode.FULL, lying=stand.lying, fresh=True)
        return self.mute(stand, looked) if looked.renew and looked.brisk else (stand, Wait(Pause.FRESH))

    def full_woken(self, stand: Stand, woken: Woken) -> Step:
        """A slot: look at once. A job is due, or the mute ends: mute and ask whether anybody sleeps."""
        if woken.free:
            return Stand(Mode.AWAKE, lying=stand.lying), Look(sweep=False)
        if stand.fresh and woken.reason is not Reason.PAUSE:
            return stand, Wait(Pause.FRESH)  # what is left of the moment
        if stand.open and woken.reason is not Reason.TIMER:
            return stand, Wait(Pause.NEVER)
        return replace(stand, lying=False, fresh=False), Mute(Manner.FULL, rise=stand.lying)

    # --- awake or full

    def mute(self, stand: Stand, looked: Looked) -> Step:
        """It looks itself, or will in a moment: no need for rings, but perhaps for help."""
        manner = Manner.SATURATED if looked.saturated else Manner.LOOKING
        return replace(stand, lying=False), Mute(manner, rise=stand.lying)

    def muted(self, stand: Stand, *, undone: bool) -> Step:
        """Awake: look on. Full: keep the mute for its time, or leave the queue to those who slept."""
        if stand.mode is Mode.AWAKE:
            return stand, Look(sweep=False)
        if stand.fresh:
            return stand, Wait(Pause.FRESH)
        return replace(stand, open=undone), Wait(Pause.NEVER if undone else Pause.RENEWAL)
