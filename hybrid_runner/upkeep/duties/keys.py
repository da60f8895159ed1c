"""Ends jobs that nobody began in time, and sees to keys that are free."""

from __future__ import annotations

import logging
from datetime import timedelta

from hybrid_runner.storage import key_calls
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS, FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.upkeep.duties.duty import Duty

log = logging.getLogger("hybrid_runner.upkeep")

PAST = timedelta(seconds=10)
"""How long ago jobs were to begin: a worker may be about to end them."""
_AT_ONCE = 1000
_CALLS = 100
"""Rows that one statement reads or deletes, and statements of a run: the next one goes on there."""


class Keys(Duty):
    """Any number of workers may do this at once."""

    name = "keys"
    every = timedelta(minutes=1)
    session = named("keys", FOR_CLAIMS | FOR_UPKEEP)

    def __init__(self, past: timedelta = PAST, at_once: int = _AT_ONCE) -> None:
        self._past = past
        self._at_once = at_once
        self._behind = key_calls.START
        self.woken = 0
        """How many jobs had to be given their key by it."""

    async def run(self, connection: Fetches) -> None:
        self.woken += await key_calls.give_free_keys(connection)
        ended = 0
        for _ in range(_CALLS):
            behind, ids = await key_calls.end_unbegun(
                connection, self._past, self._behind, self._at_once
            )
            ended += len(ids)
            self._behind = behind or key_calls.START
            if behind is None:
                break
        if ended:
            log.info(
                "%d jobs were cancelled: they were to begin by a time that is over",
                ended,
                extra=log_event("job.expired", ended=ended),
            )
        for _ in range(_CALLS):
            if await key_calls.forget_taken_keys(connection, self._at_once) < self._at_once:
                break
