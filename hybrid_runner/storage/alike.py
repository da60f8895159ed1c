"""Groups new jobs that differ in payload and key alone: what they share is sent once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from hybrid_runner.model.jobs import NewJob

_shared = attrgetter(*(name for name in NewJob.__slots__ if name not in ("payload", "key")))


class Alike(NamedTuple):
    """Jobs that differ in their payloads, and in their keys if they have any."""

    pattern: NewJob
    """What they share; its own payload and key mean nothing."""
    payloads: Sequence[str]
    """JSON texts."""
    keys: Sequence[str | None] | None = None
    """One for each payload; None: no job has a key."""


def alike(jobs: Iterable[NewJob]) -> list[Alike]:
    """The jobs in their order, neighbours that are alike in one group."""
    groups = []
    for _, neighbours in groupby(jobs, _shared):
        together = list(neighbours)
        keys = [job.key for job in together]
        keyed = keys.count(None) < len(keys)
        groups.append(
            Alike(together[0], [job.payload for job in together], keys if keyed else None)
        )
    return groups
