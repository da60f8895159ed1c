"""Finds due jobs of kinds that no live worker of their queue knows, in one worker for the whole
fleet, and keeps the table of kinds: how lately each was known.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from hybrid_runner.model.kinds import UnknownKind
from hybrid_runner.storage import kind_calls
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import OTHER
from hybrid_runner.telemetry.metrics.values import MetricValues
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

DUE_FOR = timedelta(minutes=1)
"""How long a job must have been due: a fleet that is being replaced knows no kinds for a moment."""
FORGOTTEN_AFTER = timedelta(days=90)
"""So long after a worker last knew it, what was declared of a kind is deleted."""
_MOST = 20
"""Kinds that have a series of their own; whoever may insert can make up more."""
_MOST_LINES = 10
_REPEAT_AFTER = 3600.0
"""Seconds after which a kind that is still unknown is logged again."""
_VALID = 150.0
"""Seconds for which a finding is shown if the next look fails."""


class UnknownKinds(Duty):
    """What was found is shown by the worker that holds the duty: in its health, and as a metric."""

    name = "unknown_kinds"
    every = timedelta(minutes=3)
    held = True
    session = named("unknown_kinds", FOR_SETTLING | {"statement_timeout": "9s"})
    patience = timedelta(seconds=10)

    def __init__(
        self, due_for: timedelta = DUE_FOR, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._due_for = due_for
        self._clock = clock
        self._found: tuple[Sequence[UnknownKind], float] = ((), -math.inf)
        self._reported: dict[tuple[str, str], float] = {}

    @property
    def found(self) -> Sequence[UnknownKind]:
        """What the last look found; nothing while another worker holds the duty. May be called from
        any thread.
        """
        found, at = self._found
        now = self._clock()
        return found if now < self.held_until and now - at < _VALID else ()

    def metric_values(self) -> MetricValues:
        """The values that this worker exports. May be called from any thread."""
        _, at = self._found
        if self._clock() >= self.held_until or at == -math.inf:
            return {}
        found = self.found
        values: dict[tuple[str, ...], float] = {
            (one.queue, one.kind): one.due for one in found[:_MOST]
        }
        if rest := found[_MOST:]:
            values[OTHER, OTHER] = sum(one.due for one in rest)
        return {table.UNKNOWN_KIND_JOBS.name: values}

    def end_hold(self) -> None:
        """Forget what was found: when the duty is held again it would be old."""
        super().end_hold()
        self._found = ((), -math.inf)

    async def run(self, connection: Fetches) -> None:
        """Look once, and log what is new."""
        await kind_calls.note_known_kinds(connection, FORGOTTEN_AFTER)
        began = self._clock()
        found = await kind_calls.unknown_kinds(connection, self._due_for)
        self._found = (tuple(found), began)
        self._report(found, began)

    def _report(self, found: Sequence[UnknownKind], now: float) -> None:
        self._reported = {
            kind: at for kind, at in self._reported.items() if now - at < _REPEAT_AFTER
        }
        new = [one for one in found if (one.queue, one.kind) not in self._reported]
        for one in new[:_MOST_LINES]:
            log.warning(
                "%s",
                one,
                extra=log_event("kinds.unknown", queue=one.queue, kind=one.kind, jobs=one.due),
            )
        if len(new) > _MOST_LINES:
            log.warning(
                "%d more unknown kinds: see hybrid-runner kinds",
                len(new) - _MOST_LINES,
                extra=log_event("kinds.unknown"),
            )
        self._reported.update(((one.queue, one.kind), now) for one in new)
