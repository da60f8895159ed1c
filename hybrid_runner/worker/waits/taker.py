"""Gives attempts the signals that their jobs waited for. What was given stands in the table of
waits, so that a later attempt is given the same.
"""

from __future__ import annotations

import asyncio

from hybrid_runner.errors import ConfigurationError, RunnerError, StaleClaim
from hybrid_runner.handlers.job_signals import NOT_ASYNC
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Stopped
from hybrid_runner.model.signals import AttemptSignals, Given, NotGiven
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.loops import Outage

_MOST = 200
"""Jobs in one statement."""
_LOCKED_PAUSE = 0.5
"""Seconds until it is asked again for a job whose row somebody has locked."""

Key = tuple[int, int]


class SignalTaker:
    """Many jobs that are woken at once are asked for together."""

    def __init__(self, connection: Fetches) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._one_at_a_time = asyncio.Lock()
        self._asked: dict[Key, None] = {}
        self._answers: dict[Key, Given | NotGiven] = {}

    async def take_what_woke(self, claim: Claim) -> Stopped | None:
        """Write into the claim what the job was woken for; an outcome if it is lost."""
        outage = Outage("taking signals")
        while True:
            try:
                given = await self._ask(claim.id, claim.number)
            except RunnerError as error:
                await outage.pause(error)
                continue
            outage.over()
            match given:
                case Given():
                    claim.signals = AttemptSignals(given, given)
                    return None
                case NotGiven.LOCKED:
                    await asyncio.sleep(_LOCKED_PAUSE)
                case NotGiven.STALE | NotGiven.NOT_YET:
                    return Stopped.ROW_GONE

    async def take(self, claim: Claim, key: str, call: int) -> Given | None:
        """What this call of `Job.signal` is given; None: nothing yet, so the job has to wait."""
        if asyncio.get_running_loop() is not self._loop:
            raise ConfigurationError(NOT_ASYNC)
        outage = Outage("taking a signal")
        while True:
            try:
                given = await signal_calls.take_signal(
                    self._connection, claim.id, claim.number, key, call
                )
            except RunnerError as error:
                if fault_of(error) not in (Fault.OUTAGE, Fault.STATEMENT):
                    raise
                await outage.pause(error)
                continue
            outage.over()
            match given:
                case Given():
                    return given
                case NotGiven.NOT_YET:
                    return None
                case NotGiven.LOCKED:
                    await asyncio.sleep(_LOCKED_PAUSE)
                case NotGiven.STALE:
                    raise StaleClaim(
                        f"job {claim.id} no longer belongs to this attempt: stop working on it"
                    )

    async def _ask(self, *key: int) -> Given | NotGiven:
        """Whoever comes first asks for all that wait then."""
        mine = (key[0], key[1])
        self._asked[mine] = None
        try:
            async with self._one_at_a_time:
                if mine not in self._answers:
                    batch = [mine, *(each for each in self._asked if each != mine)][:_MOST]
                    answers = await signal_calls.take_signals(self._connection, batch)
                    for each in batch:
                        if self._asked.pop(each, mine) is None:
                            self._answers[each] = answers.get(each[0], NotGiven.STALE)
            return self._answers.pop(mine)
        finally:
            self._asked.pop(mine, None)
            self._answers.pop(mine, None)
