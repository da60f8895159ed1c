"""Restores jobs that an application's own tables say there should be."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta

from pydantic import ValidationError

from hybrid_runner.errors import ConfigurationError, RowLocked
from hybrid_runner.handlers.json_type import explain
from hybrid_runner.handlers.reconciler import Reconciler
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.session_settings import named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.storage.worker_calls import MissingJob
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

_NAMED = 5
"""So many keys are named in a log line."""
_MOST_HELD = 20
"""After so many keys that others hold, the rest waits for the next turn."""


class Reconcile(Duty):
    """One reconciler. Doing it twice changes nothing: a key has one live job."""

    # A key that somebody's open transaction holds must not hold up the others for long.
    session = named("reconcile", {"lock_timeout": "200ms"})
    patience = timedelta(seconds=60)

    def __init__(self, reconciler: Reconciler, repairs: Counter) -> None:
        self.name = reconciler.duty
        self.every = reconciler.every
        self._reconciler = reconciler
        self._repairs = repairs
        repairs.add((reconciler.name,), 0)

    async def run(self, connection: Fetches) -> None:
        """Look once, and store what is missing."""
        reconciler = self._reconciler
        rows = await worker_calls.find_missing_jobs(
            connection, reconciler.query, reconciler.key_parts, reconciler.most
        )
        if not (jobs := self._jobs(rows)):
            return
        held: list[str] = []
        restored = await _store(connection, jobs, held)
        self._repairs.add((reconciler.name,), len(restored))
        if restored:
            log.info(
                "reconciler %s: restored %d jobs of %s: %s",
                reconciler.name,
                len(restored),
                reconciler.kind.name,
                _some(restored),
                extra=log_event("reconciler.restored", kind=reconciler.kind.name),
            )
        if held:
            log.warning(
                "reconciler %s: open transactions hold keys of jobs of %s: %s; again at its next"
                " turn",
                reconciler.name,
                reconciler.kind.name,
                _some(held),
                extra=log_event("reconciler.held_up", kind=reconciler.kind.name),
            )

    def _jobs(self, rows: Iterable[MissingJob]) -> list[NewJob]:
        jobs, refused = list[NewJob](), list[str]()
        for row in rows:
            try:
                jobs.append(_job(self._reconciler, row))
            except ConfigurationError as error:
                refused.append(f"{row.key or row.payload[:200]}: {error}")
        if refused:
            log.warning(
                "reconciler %s: %d rows cannot become jobs of %s: %s",
                self._reconciler.name,
                len(refused),
                self._reconciler.kind.name,
                refused[0],
                extra=log_event("reconciler.refused", kind=self._reconciler.kind.name),
            )
        return jobs


def _job(reconciler: Reconciler, row: MissingJob) -> NewJob:
    kind = reconciler.kind
    if row.key is None:
        columns = ", ".join(reconciler.key_parts[1::2])
        raise ConfigurationError(f"its key is made of columns that have no value: {columns}")
    what = "payload"
    try:
        payload = kind.decode(row.payload)
        what = "data"
        memory = None if row.data is None else kind.read_memory(row.data)
    except ValidationError as error:
        raise ConfigurationError(
            f"the {what} does not fit {kind.name}: {explain(error, what)}"
        ) from None
    except Exception as error:  # a validator of the user's may raise anything
        raise ConfigurationError(f"the {what} of {kind.name} cannot be read: {error}") from None
    if memory is None:
        return kind.new(payload, key=row.key)
    return kind.new(payload, key=row.key, data=memory)


async def _store(connection: Fetches, jobs: Sequence[NewJob], held: list[str]) -> list[str]:
    """Store them; the keys of those that were missing still. Those that others' open transactions
    hold are added to `held`.
    """
    if len(held) >= _MOST_HELD:
        return []
    kind, queue = jobs[0].kind, jobs[0].queue or "default"
    try:
        return sorted(await worker_calls.restore_jobs(connection, kind, queue, jobs))
    except RowLocked:
        if len(jobs) == 1:
            held.append(str(jobs[0].key))
            return []
    half = len(jobs) // 2
    return [
        *await _store(connection, jobs[:half], held),
        *await _store(connection, jobs[half:], held),
    ]


def _some(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(keys[:_NAMED]) + more
