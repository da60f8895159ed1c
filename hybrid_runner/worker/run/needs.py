"""What an attempt needs before its handler is called: time, room for its payload, its row, its
signal.
"""

from __future__ import annotations

import asyncio

from hybrid_runner.model.outcomes import Outcome, Stopped
from hybrid_runner.policy.rules import finish_by
from hybrid_runner.worker.run.attempt import Attempt, uncancel
from hybrid_runner.worker.run.late import expired, too_late
from hybrid_runner.worker.run.payloads import Payloads
from hybrid_runner.worker.run.rows import Rows
from hybrid_runner.worker.waits.taker import SignalTaker


class Needs:
    """Of all attempts that run in one worker."""

    def __init__(self, payloads: Payloads, rows: Rows, signals: SignalTaker) -> None:
        self._payloads = payloads
        self._rows = rows
        self._signals = signals

    def any(self, attempt: Attempt) -> bool:
        """Whether there is something to ask or to wait for; most attempts need nothing."""
        claim = attempt.claim
        return (
            attempt.stop is not None
            or claim.waits_for is not None
            or claim.source is not None
            or claim.finish_by is not None
            or claim.start_by is not None
            or claim.finish_within_seconds is not None
            or attempt.kind.rules.budgets.finish_within is not None
            or not self._payloads.is_small(claim)
        )

    async def meet(self, attempt: Attempt) -> Outcome | None:
        """Ask and wait; an outcome if the attempt is not to begin."""
        claim, budgets = attempt.claim, attempt.kind.rules.budgets
        if attempt.stop is not None:
            return attempt.stop
        if (unbegun := expired(claim)) is not None:
            return unbegun
        if claim.finish_within_seconds is not None or budgets.finish_within is not None:
            claim.finish_by = finish_by(claim, budgets)
        if (late := too_late(claim)) is not None:
            return late
        if not self._payloads.is_small(claim):
            if (ended := await self._hold_payload(attempt)) is not None:
                return ended
            if (late := too_late(claim)) is not None:
                return late
        if claim.source is not None and (ended := await self._show_row(attempt)) is not None:
            return ended
        return None if claim.waits_for is None else await self._take_signal(attempt)

    async def _hold_payload(self, attempt: Attempt) -> Outcome | None:
        """Wait for room for a large payload; the attempt's time has not begun."""
        attempt.waits = attempt.entered = True
        try:
            return await self._payloads.hold(attempt.claim)
        except asyncio.CancelledError:
            uncancel(asyncio.current_task())
            return attempt.stop or Stopped.SHUTDOWN
        finally:
            attempt.waits = attempt.entered = False

    async def _show_row(self, attempt: Attempt) -> Outcome | None:
        """Let the row show that its job runs; the attempt's time has not begun."""
        claim, rows = attempt.claim, self._rows
        attempt.entered = True
        try:
            if (ended := await rows.show(claim)) is not None or self._payloads.is_small(claim):
                return ended
            return await self._payloads.hold(claim, rows.read)
        except asyncio.CancelledError:
            uncancel(asyncio.current_task())
            return attempt.stop or Stopped.SHUTDOWN
        finally:
            attempt.entered = False

    async def _take_signal(self, attempt: Attempt) -> Outcome | None:
        """Find out what woke a job that waited; the attempt's time has not begun."""
        attempt.entered = True
        try:
            return await self._signals.take_what_woke(attempt.claim)
        except asyncio.CancelledError:
            uncancel(asyncio.current_task())
            return attempt.stop or Stopped.SHUTDOWN
        finally:
            attempt.entered = False
