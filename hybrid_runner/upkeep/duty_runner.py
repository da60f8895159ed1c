"""Does the duties that this worker's heartbeats are given. They run beside the heartbeat, so a long
one does not hold it up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from hybrid_runner.errors import ConnectionLost, RunnerError
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.held_duty import HeldDuty

log = logging.getLogger("hybrid_runner.upkeep")


class DutyRunner:
    """Does each duty in a loop of its own, so that none waits behind one that takes long. What
    fails is tried again when it is next given out.
    """

    def __init__(self, dsn: str, duties: Sequence[Duty]) -> None:
        self._dsn = dsn
        self._once = {duty.name: duty for duty in duties if not duty.held}
        self._held = {duty.name: HeldDuty(dsn, duty) for duty in duties if duty.held}
        self._due = {name: asyncio.Event() for name in self._once}
        self._unknown: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The duties that this worker knows. Workers of another version may know others."""
        return [*self._once, *self._held]

    @property
    def loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """The loops that have to run for duties to be done."""
        return (
            *(partial(self._run_when_due, duty) for duty in self._once.values()),
            *(held.run for held in self._held.values()),
        )

    def give(self, names: Iterable[str], holder: str) -> None:
        """Do these soon. `holder` is how hybrid_runner.duties names this worker as a holder."""
        for name in names:
            if name in self._held:
                self._held[name].give(holder)
            elif name in self._due:
                self._due[name].set()
            elif name not in self._unknown:
                self._unknown.add(name)
                log.warning(
                    "the duty %r is not known here: left to workers of another version",
                    name,
                    extra=log_event("upkeep.duty_unknown"),
                )

    def ring(self, name: str) -> None:
        """There is work for a held duty: if this worker holds it, it is done now."""
        if name in self._held:
            self._held[name].ring()

    async def close(self) -> None:
        """Give held duties to other workers."""
        for held in self._held.values():
            await held.close()

    async def _run_when_due(self, duty: Duty) -> None:
        due = self._due[duty.name]
        while True:
            await due.wait()
            due.clear()
            await self._run(duty)

    async def _run(self, duty: Duty) -> None:
        connection = LazyConnection(self._dsn, duty.session, timeout=duty.patience.total_seconds())
        try:
            try:
                await duty.run(connection)
            except ConnectionLost:  # at once, and once: its next turn may be an hour away
                await duty.run(connection)
        except RunnerError as error:
            log.warning(
                "duty %s failed: %s; again at its next turn",
                duty.name,
                error,
                extra=log_event("upkeep.failed"),
            )
        except Exception:
            log.exception(
                "duty %s failed; again at its next turn",
                duty.name,
                extra=log_event("upkeep.failed"),
            )
        finally:
            await connection.close()
