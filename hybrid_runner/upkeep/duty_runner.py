"""Does the duties that this worker's heartbeats are given. They run beside the heartbeat, so a long
one does not hold it up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from hybrid_runner.errors import RunnerError
from hybrid_runner.storage.connections.lazy import LazyConnection
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.duties.duty import Duty
from hybrid_runner.upkeep.held_duty import HeldDuty

log = logging.getLogger("hybrid_runner.upkeep")


class DutyRunner:
    """Does duties one after another, and each held one in a loop of its own. What fails is tried
    again when it is next given out.
    """

    def __init__(self, dsn: str, duties: Sequence[Duty]) -> None:
        self._dsn = dsn
        self._in_turn = {duty.name: duty for duty in duties if not duty.held}
        self._held = {duty.name: HeldDuty(dsn, duty) for duty in duties if duty.held}
        self._due: set[str] = set()
        self._given = asyncio.Event()
        self._unknown: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The duties that this worker knows. Workers of another version may know others."""
        return [*self._in_turn, *self._held]

    @property
    def loops(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """The loops that have to run for duties to be done."""
        return (self._run_in_turn, *(held.run for held in self._held.values()))

    def give(self, names: Iterable[str], holder: str) -> None:
        """Do these soon. `holder` is how hybrid_runner.duties names this worker as a holder."""
        for name in names:
            if name in self._held:
                self._held[name].give(holder)
            elif name in self._in_turn:
                self._due.add(name)
                self._given.set()
            elif name not in self._unknown:
                self._unknown.add(name)
                log.warning(
                    "the duty %r is not known here: left to workers of another version",
                    name,
                    extra=log_event("upkeep.duty_unknown"),
                )

    async def close(self) -> None:
        """Give held duties to other workers."""
        for held in self._held.values():
            await held.close()

    async def _run_in_turn(self) -> None:
        while True:
            await self._given.wait()
            self._given.clear()
            while self._due:
                name = next(name for name in self._in_turn if name in self._due)
                self._due.discard(name)
                await self._run(self._in_turn[name])

    async def _run(self, duty: Duty) -> None:
        connection = LazyConnection(self._dsn, duty.session, timeout=duty.patience.total_seconds())
        try:
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
