"""Who may be declared dead while it lives: a worker that was frozen, or cut off from the server,
and nobody else. Pure: spans of time and log lines in, complaints out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

DECLARED_DEAD = "was declared dead although it lives"
_HEARS_WITHIN = 3.0
"""Seconds: a few heartbeats."""


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when, as `time.time()` says it."""

    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Absence:
    """When the worker in one place, or in each of them (None), could not speak."""

    worker: int | None
    span: Span

    def excuses(self, number: int, at: float, lease: float) -> bool:
        """Whether the worker in that place may hear then that it was declared dead. It may have
        paused between two tries for as long as it had been away by then.
        """
        began, ended = self.span.began, self.span.ended
        latest = ended + (ended - began) + lease + _HEARS_WITHIN
        return self.worker in (None, number) and began <= at <= latest


def wrongly_declared_dead(
    logs: Mapping[int, Iterable[Mapping[str, Any]]], absences: Sequence[Absence], lease: float
) -> Iterator[str]:
    """Each death of a live worker for which no absence is the reason; logs by the workers'
    places.
    """
    for number, lines in logs.items():
        for line in lines:
            if DECLARED_DEAD not in line["message"]:
                continue
            at = datetime.fromisoformat(line["at"]).timestamp()
            if not any(absence.excuses(number, at, lease) for absence in absences):
                yield (
                    f"worker {number} was neither frozen nor cut off, and at {line['at']} it said:"
                    f" {line['message']}"
                )
