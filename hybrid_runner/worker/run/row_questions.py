"""Asks Postgres to let rows of one attached table show that their jobs run. One row that cannot be
read does not keep the others of its batch.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import RowUnread
from hybrid_runner.model.sources import ShownRow
from hybrid_runner.policy.refused_rows import Fault, fault_of
from hybrid_runner.storage import source_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.worker.loops import Outage

log = logging.getLogger("hybrid_runner.worker")

_MOST_BYTES = 8 * 1024 * 1024
"""Bytes of rows that come with one answer."""
_MOST_REFUSED = 3
"""Once so many rows were refused alone, and none was taken, the rest of the batch is not tried."""

Answer = ShownRow | RowUnread | None
"""None: the job is no longer this claim's."""


class RowQuestions:
    """About one table."""

    def __init__(self, connection: Fetches, source: int) -> None:
        self._connection = connection
        self._source = source
        self._outage = Outage(f"rows of source {source}")
        self._is_unreadable = False

    async def ask(self, batch: Sequence[Claim]) -> dict[int, Answer]:
        """Answers by job; none of those that were not asked for yet when Postgres went away, which
        it waits for a while then.
        """
        answers = dict[int, Answer]()
        try:
            await self._ask(batch, answers)
            self._outage.over()
        except RunnerError as error:
            await self._outage.pause(error)
        return answers

    async def _ask(self, batch: Sequence[Claim], answers: dict[int, Answer]) -> None:
        """What Postgres refuses of a batch is found by halves."""
        parts, refused = deque([batch]), 0
        while parts and refused < _MOST_REFUSED:
            part = parts.popleft()
            found = await self._show(part)
            answers |= found
            bad = [claim for claim in part if _is_refused(found[claim.id])]
            if len(bad) < len(part):
                refused = 0
                self._note_read()
            if bad and len(part) > 1:
                middle = len(bad) // 2
                parts.extendleft(half for half in (bad[middle:], bad[:middle]) if half)
            elif bad:
                refused += 1
                self._note_unread(answers[bad[0].id])

    async def _show(self, part: Sequence[Claim]) -> dict[int, Answer]:
        try:
            shown = await source_calls.show_claims(
                self._connection, [(claim.id, claim.number) for claim in part], _MOST_BYTES
            )
            unread = [each.job_id for each in shown.values() if each.size is None and each.is_late]
            why = await source_calls.why_late(self._connection, unread) if unread else ""
        except RunnerError as error:
            if fault_of(error) is Fault.OUTAGE:
                raise
            cause = RowUnread(f"rows cannot be read of source {self._source}: {error}")
            return {claim.id: cause for claim in part}
        answers: dict[int, Answer] = dict.fromkeys((claim.id for claim in part), None)
        answers.update(shown)
        if not unread:
            return answers
        cause = RowUnread(f"rows cannot be read of {why or f'source {self._source}'}")
        return answers | dict.fromkeys(unread, cause)

    def _note_read(self) -> None:
        if self._is_unreadable:
            self._is_unreadable = False
            log.info(
                "rows of source %d can be read again",
                self._source,
                extra=log_event("source.readable", source=self._source),
            )

    def _note_unread(self, answer: Answer) -> None:
        if isinstance(answer, RowUnread) and not self._is_unreadable:
            self._is_unreadable = True
            log.warning(
                "%s; jobs of such rows go back to their queue, for up to a minute each",
                answer.reason,
                extra=log_event("source.unreadable", source=self._source),
            )


def _is_refused(answer: Answer) -> bool:
    return answer is not None and (isinstance(answer, RowUnread) or answer.outcome == "refused")
