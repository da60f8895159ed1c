"""Which jobs a fallback poll found although a ring should have announced them. Time is an argument.

Many a job is rightly found by a poll. Only this counts: the job was inserted as due; we were asleep
with an open bell when that
happened, and have been since; nothing was heard on the queue's channel since then, nor for a moment
after the poll, in which
the ring of a transaction that committed just now still arrives; and nobody mutes the bell or knows
other kinds than we do.
"""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 0.5
"""Seconds by which a ring may be slower than a poll."""
SETTLED = 1.0
"""Seconds after the poll in which a ring still counts."""
HEALED_EVERY = 60.0
"""Seconds between two reconnects for this reason."""
RECENT = 300.0
"""Seconds for which a missed ring is shown as a warning."""


@dataclass(frozen=True, slots=True)
class Sleeper:
    """What a worker knows when a fallback poll of its comes back; times are seconds until now."""

    asleep: float | None
    """For how long it has been asleep; None: it was not."""
    rung: float | None
    """Since it last heard anything about jobs on the queue's channel; None: it never has."""
    kinds_differ: bool = False
    """Whether others of the queue know other kinds, or may."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of suspects a moment later."""

    inserted_as_due: int
    """So many of them; what was delayed, put back or retried rang when that was done, and then has
    a timer.
    """
    bell_open: bool
    """Whether nobody muted it when the poll came back."""
    alone: bool
    """Whether nobody else works on the queue, who could have muted it."""
    rung: bool
    """Whether an insert has rung since."""
    hearing: bool
    """Whether the listener still hears."""


def is_suspect(waited: float, sleeper: Sleeper) -> bool:
    """Whether a job that was due for so many seconds, when a fallback poll found it, may have rung
    in vain.
    """
    if sleeper.asleep is None or sleeper.kinds_differ or waited < MARGIN:
        return False
    since_due = waited + MARGIN
    return sleeper.asleep >= since_due and (sleeper.rung is None or sleeper.rung > since_due)


def missed(proof: Proof) -> int:
    """How many rings were missed."""
    is_certain = proof.hearing and not proof.rung and (proof.alone or proof.bell_open)
    return proof.inserted_as_due if is_certain else 0


def heals(now: float, healed_at: float) -> bool:
    """Whether to listen anew because of one."""
    return now - healed_at >= HEALED_EVERY
