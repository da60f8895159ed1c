"""What a worker may claim from a queue: nothing that would wait here for a thread or a process
while another worker has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from hybrid_runner.handlers.kind import Executor, JobKind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.storage.claim_calls import KindLimits, Kinds
from hybrid_runner.worker.run.places import Places

Executors = frozenset[Executor]
_NONE: Executors = frozenset()


class Claimable:
    """All kinds, until a job has waited in vain for a thread (or a process). From then on threads
    are short: as many jobs are claimed as threads are free, none of their kinds while there are
    none, until a look finds fewer jobs than it asked for.
    """

    def __init__(self, registry: Registry, places: Mapping[Executor, Places]) -> None:
        self._registry = registry
        self._places = places
        self._short: Executors = _NONE
        self._kinds: dict[Executors, Kinds] = {}

    def watch(self, on_shortage: Callable[[], None], on_free: Callable[[], None]) -> None:
        """Call these when something has become short, and when some of what is short is free."""
        for executor, places in self._places.items():
            places.watch(
                partial(self._ran_short, executor, on_shortage),
                partial(self._came_free, executor, on_free),
            )

    @property
    def is_short(self) -> bool:
        """Whether looks may leave due jobs to other workers."""
        return bool(self._short)

    def excluded(self) -> Executors:
        """Whose kinds a look must leave out now."""
        if not self._short:
            return _NONE
        return frozenset(executor for executor in self._short if not self._places[executor].free)

    def most(self) -> float:
        """How many jobs a look may ask for now, whatever slots are free."""
        if not self._short:
            return math.inf
        excluded = self.excluded()
        if excluded and not self.kinds(excluded).names:
            return 0
        return min((self._places[each].free for each in self._short - excluded), default=math.inf)

    def kinds(self, excluded: Executors) -> Kinds:
        """All kinds but those of these executors."""
        if excluded not in self._kinds:
            self._kinds[excluded] = kinds_of(
                kind for kind in self._registry if kind.executor not in excluded
            )
        return self._kinds[excluded]

    def found_all(self, excluded: Executors) -> None:
        """A look that left these out found fewer jobs than it asked for: no others are waiting."""
        self._short &= excluded

    def _ran_short(self, executor: Executor, on_shortage: Callable[[], None]) -> None:
        if executor not in self._short:
            self._short |= {executor}
            on_shortage()

    def _came_free(self, executor: Executor, on_free: Callable[[], None]) -> None:
        if executor in self._short:
            on_free()


def kinds_of(kinds: Iterable[JobKind[Any, Any]]) -> Kinds:
    """These kinds, with what their handlers say of their jobs."""
    return Kinds(
        [
            KindLimits(kind.name, kind.max_attempts, kind.timeout, kind.limits == "ceiling")
            for kind in kinds
        ]
    )
