"""Asks Postgres to let rows of one attached table show that their jobs run. One row that cannot be
read does not keep the others of its batch.
"""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from collections.abc import Sequence

from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Raised, Refused, RowUnread
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
"""Outcomes after which the job runs."""

_TOO_SLOW = "57014"
_LONGEST_TURN = 1.0
"""Seconds for which rows are read one by one before those that were read are answered."""

_OF_ROW = (Fault.UNREADABLE_ROW, Fault.UNFIT_ROW)

Answer = ShownRow | RowUnread | Refused | Raised | None
"""Refused: the row can never be read. Raised: it took too long, which is charged. None: the job is
no longer this claim's.
"""


class RowQuestions:
    """About one table."""

    def __init__(self, connection: Fetches, source: int) -> None:
        self._connection = connection
        self._source = source
        self._outage = Outage(f"rows of source {source}")
        self._is_unreadable = self._is_slow = False

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
        """Show the batch, then read its rows."""
        await self._show_all(batch, answers)
        unread = dict[str, ShownRow]()
        for claim in batch:
            answer = answers.get(claim.id)
            if (
                isinstance(answer, ShownRow)
                and answer.outcome in _RUN
                and claim.row_key is not None
            ):
                unread[claim.row_key] = answer
        if unread:
            read = await self._read(unread)
            for row in unread.values():  # one that was not read yet takes no place of a handler
                del answers[row.job_id]
            answers |= read

    async def _read(self, shown: dict[str, ShownRow]) -> dict[int, Answer]:
        """Read rows together, or each alone if Postgres refuses that, or one was slow just now."""
        if not self._is_slow:
            try:
                answers = await self._rows_of(shown)
            except RunnerError as error:
                if fault_of(error) is Fault.OUTAGE:
                    raise
            else:
                self._note_read()
                return answers
        return await self._read_each(shown)

    async def _read_each(self, shown: dict[str, ShownRow]) -> dict[int, Answer]:
        """Fail the jobs of rows whose data is at fault, and of those that are refused while others
        are read. Where none is read, and where a statement may work later, jobs wait. Once
        that takes long, what was read is answered first, and the rest is asked for again, in
        another order.
        """
        self._is_slow = False
        answers, refused = dict[int, Answer](), dict[int, RunnerError]()
        is_readable = False
        until = time.monotonic() + _LONGEST_TURN
        for key, row in random.sample([*shown.items()], len(shown)):
            answer = await self._read_one(key, row)
            if time.monotonic() > until and not isinstance(answer, RunnerError):
                self._is_slow = True
                return {**answers, row.job_id: answer}
            if isinstance(answer, RunnerError):
                refused[row.job_id] = answer
            else:
                answers[row.job_id] = answer
            is_readable = is_readable or _is_found(answers.get(row.job_id))
            if len(refused) == _MOST_REFUSED and not is_readable:
                break
        if is_readable:
            self._note_read()
        for row in shown.values():
            if row.job_id not in answers:
                error = refused.get(row.job_id) or next(iter(refused.values()))
                answers[row.job_id] = self._refusal(row, error, is_readable=is_readable)
        return answers

    def _refusal(self, row: ShownRow, error: RunnerError, *, is_readable: bool) -> Answer:
        if is_readable and not isinstance(error, DatabaseUnavailable):
            return _unreadable(row, error)
        waits = RowUnread(f"rows cannot be read of {row.table}: {error}")
        if not is_readable:
            self._note_unread(waits)
        return waits

    async def _read_one(self, key: str, row: ShownRow) -> Answer | RunnerError:
        try:
            return (await self._rows_of({key: row}))[row.job_id]
        except RunnerError as error:
            fault = fault_of(error)
            if fault is Fault.OUTAGE:
                raise
            if error.sqlstate == _TOO_SLOW and not error.in_foreign_function:
                return Raised("RowUnread", f"its row of {row.table} cannot be read: {error}")
            return _unreadable(row, error) if fault in _OF_ROW else error

    async def _rows_of(self, shown: dict[str, ShownRow]) -> dict[int, Answer]:
        rows = await source_calls.read_rows(
            self._connection, self._source, list(shown), _MOST_BYTES
        )
        answers = dict[int, Answer]()
        for key, row in shown.items():
            payload, size = rows.get(key, (None, None))
            outcome = row.outcome if key in rows else "gone"
            answers[row.job_id] = row._replace(payload=payload, size=size, outcome=outcome)
        return answers

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


def _unreadable(row: ShownRow, error: RunnerError) -> Refused:
    return Refused("PayloadUnreadable", f"its row of {row.table} cannot be read: {error}")


def _is_found(answer: Answer) -> bool:
    return isinstance(answer, ShownRow) and answer.outcome != "gone"


def _is_refused(answer: Answer) -> bool:
    return isinstance(answer, RowUnread) or (
        isinstance(answer, ShownRow) and answer.outcome == "refused"
    )
