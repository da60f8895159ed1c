"""Which jobs a fallback poll found although a ring should have announced them. Time is an argument.

Many jobs are rightly found by a poll. A ring was missed if all of this holds: the job was inserted
as due; this worker was asleep with an open bell then, and has been since; nothing was heard on the
queue's channel since then, nor for a moment after the poll, in which the ring of a transaction that
committed just now still arrives; and nobody mutes the bell or knows other kinds of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 0.5
"""Seconds by which a ring may be slower than a poll."""
SETTLED = 1.0
"""Seconds after the poll in which a ring still counts."""
RECONNECT_EVERY = 60.0
"""Seconds between two reconnects because of missed rings."""
RECENT = 300.0
"""Seconds for which a missed ring is shown as a warning."""


@dataclass(frozen=True, slots=True)
class Sleeper:
    """What a worker knows when its fallback poll is answered; times are seconds until now."""

    asleep: float | None
    """For how long it has been asleep; None: it is not."""
    rung: float | None
    """Since when it has heard nothing about jobs on the queue's channel; None: it never has."""
    kinds_differ: bool = False
    """Whether other workers of the queue know other kinds, or may."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of the suspected jobs a moment later."""

    inserted_as_due: int
    """How many of them were; a job that was delayed, put back or retried has a timer instead."""
    bell_open: bool
    """Whether nobody muted it when the poll was answered."""
    alone: bool
    """Whether nobody else works on the queue, who could have muted it."""
    rung: bool
    """Whether an insert has rung since."""
    hearing: bool
    """Whether the listener still hears."""


def is_suspect(waited: float, sleeper: Sleeper) -> bool:
    """Whether the ring of a job may have been missed that was due for so many seconds when a
    fallback poll found it.
    """
    if sleeper.asleep is None or sleeper.kinds_differ or waited < MARGIN:
        return False
    since_due = waited + MARGIN
    return sleeper.asleep >= since_due and (sleeper.rung is None or sleeper.rung > since_due)


def missed(proof: Proof) -> int:
    """How many rings were certainly missed."""
    is_certain = proof.hearing and not proof.rung and (proof.alone or proof.bell_open)
    return proof.inserted_as_due if is_certain else 0


def may_reconnect(now: float, reconnected_at: float) -> bool:
    """Whether to connect the listener again because of a missed ring."""
    return now - reconnected_at >= RECONNECT_EVERY
