"""Who may be declared dead while it lives: a worker that was frozen, or cut off from the server,
and nobody else. Pure: spans of time and log lines in, complaints out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

DECLARED_DEAD = "was declared dead although it lives"
_RECONNECTS_WITHIN = 10.0
"""Seconds: the longest pause of a worker between two tries."""


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
            if not any(
                absence.worker in (None, number)
                and absence.span.began <= at <= absence.span.ended + lease + _RECONNECTS_WITHIN
                for absence in absences
            ):
                yield (
                    f"worker {number} was neither frozen nor cut off, and at {line['at']} it said:"
                    f" {line['message']}"
                )
