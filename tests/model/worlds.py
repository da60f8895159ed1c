"""What a world is made of: what workers and producers share, and the state of each worker."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from hybrid_runner.policy.doorbell import BellState, Mode, Pause, Reason, Step, Wait


class Bell(IntEnum):
    """What an insert, or a heartbeat, reads."""

    OPEN = 0
    MUTED = 1
    RUN_OUT = 2


class Phase(IntEnum):
    """How far a job is until a worker claims it."""

    NEW = 0  # not inserted yet
    QUIET = 1  # in flight, and found the bell muted
    RINGING = 2  # in flight, and will ring
    COMMITTED = 3
    LATE = 4  # committed behind the frontier: only sweeps see it


class ListenerState(Enum):
    """How the listener's connection is."""

    HEARS = "hears"
    BROKEN = "broken"  # and nobody knows
    LOST = "lost"  # and the worker knows


class Life(Enum):
    """The state of a worker's process."""

    ALIVE = "alive"
    DYING = "dying"  # dead, but the server still runs the statement that it sent
    DEAD = "dead"


Job = tuple[Phase, int]
"""The number says, while the job is in flight, which workers wait for its transaction: a bit
each.
"""

IN_FLIGHT = (Phase.QUIET, Phase.RINGING)
WAITING = (Phase.COMMITTED, Phase.LATE)


class Scene(NamedTuple):
    """What is shared, but for flags and the rows of sleepers. Jobs are sorted: producers are alike.
    What was claimed is with its worker.
    """

    bell: Bell
    jobs: tuple[Job, ...]
    crashes: int = 0
    """How many may still come."""
    losses: int = 0
    """How many listeners may still be lost."""
    leaves: int = 0
    """How many workers may still be stopped."""

    def __str__(self) -> str:
        jobs = (
            phase.name.lower() + (f" awaited by {bits:b}" if bits else "")
            for phase, bits in self.jobs
        )
        return f"bell {self.bell.name.lower()}; jobs {', '.join(jobs) or 'none'}"


class Worker(NamedTuple):
    """One worker between two writes or reads of what is shared."""

    free: int
    running: int = 0
    step: Step = (BellState(Mode.ASLEEP, is_sleeper=True), Wait(Pause.NEVER))
    stage: int = 0
    """How many parts of the action are done: a mute is several writes."""
    flag: Reason | None = None
    listed: bool = True
    """It has a row in the table of sleepers that others see, and the row's session lasts."""
    listening: ListenerState = ListenerState.HEARS
    life: Life = Life.ALIVE

    def __str__(self) -> str:
        if self.life is Life.DEAD:
            return "dead"
        (state, action), marks = self.step, [self.life.value] if self.life is Life.DYING else []
        marks += [self.flag.way] if self.flag is not None else []
        marks += ["listed"] if self.listed else []
        marks += [self.listening.value] if self.listening is not ListenerState.HEARS else []
        return (
            f"{state.mode.value} {action} part {self.stage}, {self.free} free, {self.running}"
            f" running [{' '.join(marks)}]"
        )


class Chances(NamedTuple):
    """What may happen beside inserts, handlers that end, and mutes that run out."""

    crashes: int = 0
    losses: int = 0
    """Listeners that break; they come back."""
    leaves: int = 0
    """Workers that are stopped."""
    heartbeats: bool = False
    """A heartbeat may see a mute that ran out although its owner lives, and is only slow."""
    late_commits: bool = False
    """A transaction may commit behind the frontier, and a sweep may be too dear."""
    saturation: bool = False
    """Looks of an awake worker may keep coming back full."""


class Rules(NamedTuple):
    """What the one who performs the actions must keep; tests drop them one at a time."""

    lower_before_look: bool = True
    join_before_opening: bool = True
    """The row of sleepers is committed before the bell is opened, not with it."""
    open_when_falling: bool = True
    leave_when_muting: bool = True
    stay_until_muting: bool = True
    """The row stays until the worker mutes the bell; dropped: until it is woken."""
    mute_before_reading: bool = True
    """A full worker reads the table of sleepers after it has muted the bell."""
    full_renews: bool = True
    leaving_is_told: bool = True
    overdue: bool = True
    """Heartbeats of those who sleep see jobs that wait, once a worker has died."""


DEAD = Worker(0, listed=False, life=Life.DEAD)
