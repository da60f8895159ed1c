"""Asks Postgres to let rows of one attached table show that their jobs run. One row that cannot be
read does not keep the others of its batch.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from hybrid_runner.errors import RowLocked, RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Refused, RowUnread
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
_RUN = ("written", "kept", "locked", "refused", "undone")
"""What was done with the rows of jobs that run."""

Answer = ShownRow | RowUnread | Refused | None
"""Refused: the row can never be read. None: the job is no longer this claim's."""


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
        """Shown first, and read then: what is read is what was shown, or newer."""
        await self._show_all(batch, answers)
        sizes = {claim.id: size_at_door(claim.payload) for claim in batch}
        unread = dict[str, ShownRow]()
        for claim in batch:
            answer = answers.get(claim.id)
            if not isinstance(answer, ShownRow) or answer.outcome not in _RUN:
                continue
            if (size := sizes[claim.id]) is not None:
                answers[claim.id] = answer._replace(size=size)
            elif claim.row_key is not None:
                unread[claim.row_key] = answer
        answers |= await self._read(unread)

    async def _read(self, shown: dict[str, ShownRow]) -> dict[int, Answer]:
        """A row that cannot be read is found by halves, and its job fails; where the whole table
        cannot be read, its jobs wait.
        """
        answers, parts = dict[int, Answer](), deque([list(shown)] if shown else [])
        while parts:
            part = parts.popleft()
            try:
                rows = await self._rows_of(part)
            except RunnerError as error:
                if fault_of(error) is Fault.OUTAGE:
                    raise
                cause = await self._fault_of_table(error, is_alone=len(part) == 1)
                if cause is not None:
                    why = RowUnread(f"rows cannot be read of {shown[part[0]].table}: {cause}")
                    left = [key for one in (part, *parts) for key in one]
                    self._note_unread(why)
                    return answers | {shown[key].job_id: why for key in left}
                if len(part) > 1:
                    middle = len(part) // 2
                    parts.extendleft((part[middle:], part[:middle]))
                else:
                    answers[shown[part[0]].job_id] = Refused(
                        "PayloadUnreadable",
                        f"its row of {shown[part[0]].table} cannot be read: {error}",
                    )
                continue
            self._note_read()
            for key in part:
                payload, size = rows.get(key, (None, None))
                of = shown[key]._replace(payload=payload, size=size)
                answers[of.job_id] = of if key in rows else of._replace(outcome="gone")
        return answers

    async def _rows_of(self, keys: Sequence[str]) -> dict[str, tuple[str | None, int]]:
        return await source_calls.read_rows(self._connection, self._source, keys, _MOST_BYTES)

    async def _fault_of_table(self, error: RunnerError, *, is_alone: bool) -> RunnerError | None:
        """Why no row of the table can be read now; None: one of these rows is at fault."""
        try:
            await self._rows_of([])
        except RunnerError as now:
            if fault_of(now) is Fault.OUTAGE:
                raise
            return now
        return error if is_alone and isinstance(error, RowLocked) else None

    async def _show_all(self, batch: Sequence[Claim], answers: dict[int, Answer]) -> None:
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
                self._connection, [(claim.id, claim.number) for claim in part]
            )
        except RunnerError as error:
            if fault_of(error) is Fault.OUTAGE:
                raise
            cause = RowUnread(f"rows cannot be read of source {self._source}: {error}")
            return {claim.id: cause for claim in part}
        answers: dict[int, Answer] = dict.fromkeys((claim.id for claim in part), None)
        return answers | shown

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


def size_at_door(payload: str | None) -> int | None:
    """Of a row that was too large when its job was stored, whose payload is its size."""
    return int(payload) if payload is not None and payload.isdecimal() else None


def _is_refused(answer: Answer) -> bool:
    return isinstance(answer, RowUnread) or (
        isinstance(answer, ShownRow) and answer.outcome == "refused"
    )
