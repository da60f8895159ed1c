"""Jobs that differ in little: what they share is said once, and sent once where the statement
allows it.
"""

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
    """All but its payload and its key is theirs."""
    payloads: Sequence[str]
    """JSON texts."""
    keys: Sequence[str | None] | None = None
    """As many as there are payloads; None: no job has one."""


def alike(jobs: Iterable[NewJob]) -> list[Alike]:
    """The same jobs in the same order; neighbours that are alike are together."""
    groups = []
    for _, neighbours in groupby(jobs, _shared):
        together = list(neighbours)
        keys = [job.key for job in together]
        keyed = keys.count(None) < len(keys)
        groups.append(
            Alike(together[0], [job.payload for job in together], keys if keyed else None)
        )
    return groups
