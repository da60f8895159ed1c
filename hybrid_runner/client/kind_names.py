"""Kinds that are named where their code is not at hand: where their jobs go, and likely typos."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage import kind_calls
from hybrid_runner.storage.alike import Alike
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event

LOGGER = "hybrid_runner.kinds"
"""A logger of its own: commands that log errors alone show these lines too."""
log = logging.getLogger(LOGGER)

_MOST = 1000
"""So many names are remembered, so that each is asked for once."""


class KindNames:
    """Asks Postgres what workers have declared."""

    def __init__(self) -> None:
        self._asked: set[str] = set()

    async def place(self, on: Fetches, job: NewJob) -> NewJob:
        """The job with its queue: that of the kind's handler if none was given."""
        if job.queue is not None:
            return job
        return replace(job, queue=(await self._queues(on, [job.kind]))[job.kind])

    async def place_all(self, on: Fetches, groups: Sequence[Alike]) -> list[Alike]:
        """The jobs with their queues."""
        names = {group.pattern.kind for group in groups if group.pattern.queue is None}
        if not names:
            return [*groups]
        queues = await self._queues(on, names)
        return [_placed(group, queues) for group in groups]

    async def warn_of_typo(self, on: Fetches, kind: str) -> None:
        """Log a warning if no worker has declared this kind and another one looks like it; asked
        once for each kind.
        """
        if kind not in self._asked and len(self._asked) < _MOST:
            with contextlib.suppress(RunnerError):  # the job is stored, whatever this says
                await self._queues(on, [kind])

    async def _queues(self, on: Fetches, kinds: Collection[str]) -> dict[str, str]:
        found = await kind_calls.look_up_kinds(on, kinds)
        for one in found:
            if one.meant is not None and one.kind not in self._asked:
                log.warning(
                    "no worker has a handler for kind %r: did you mean %r?",
                    one.kind,
                    one.meant,
                    extra=log_event("job.kind_undeclared", kind=one.kind),
                )
            if len(self._asked) < _MOST:
                self._asked.add(one.kind)
        return {one.kind: one.queue for one in found}


def _placed(group: Alike, queues: dict[str, str]) -> Alike:
    pattern = group.pattern
    if pattern.queue is not None:
        return group
    return group._replace(pattern=replace(pattern, queue=queues[pattern.kind]))
