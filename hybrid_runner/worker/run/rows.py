"""Lets rows of attached tables show that their jobs run, and reads them for their handlers: many in
one statement, each table apart from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.outcomes import Cancel, Outcome, Raised, Refused, RowUnread, Stopped
from hybrid_runner.model.sources import LARGEST_ROW, ShownRow
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.loops import keep
from hybrid_runner.worker.run.row_questions import Answer, RowQuestions

_MOST = 200
"""Rows in one statement."""
_LOCKED_PAUSE = 0.5
"""Seconds until it is asked again for a job that somebody has locked."""

_Question = tuple[Claim, asyncio.Future[Answer]]
Insist = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


class _Table:
    def __init__(self, questions: RowQuestions) -> None:
        self.questions = questions
        self.waiting: list[_Question] = []
        self.is_asking = False

    async def answer(self) -> None:
        """Ask until nobody waits. What comes while a statement runs is in the next one."""
        await asyncio.sleep(0)  # the others of the same look come at once
        while self.waiting:
            batch = self._next_batch()
            try:
                answers = await self.questions.ask([claim for claim, _ in batch.values()])
            except BaseException:  # whoever runs this starts it again
                self.waiting += batch.values()
                raise
            for job_id, question in batch.items():
                if job_id not in answers:
                    self.waiting.append(question)
                elif not question[1].done():  # else its attempt was stopped
                    question[1].set_result(answers[job_id])
        self.is_asking = False

    def _next_batch(self) -> dict[int, _Question]:
        """By job: of two claims of one, which a crash can bring about, one has to wait."""
        batch, left = dict[int, _Question](), list[_Question]()
        for question in self.waiting:
            claim, answered = question
            if len(batch) == _MOST or claim.id in batch:
                left.append(question)
            elif not answered.done():
                batch[claim.id] = question
        self.waiting = left
        return batch


class Rows:
    """Of all attached tables whose jobs this worker runs."""

    def __init__(self, connection_of: Callable[[int], Fetches], insist: Insist) -> None:
        """`insist` runs something in the background."""
        self._connection_of = connection_of
        self._insist = insist
        self._tables: dict[int, _Table] = {}

    async def show(self, claim: Claim) -> Outcome | None:
        """Let its row show that the job runs, and make the row its payload: None if there was no
        room for it in the answer. An outcome if the handler is not to be called.
        """
        assert claim.source is not None  # noqa: S101  # the caller looks
        table = self._tables.get(claim.source) or self._new_table(claim.source)
        while True:
            answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            table.waiting.append((claim, answered))
            if not table.is_asking:
                table.is_asking = True
                self._insist(partial(keep, f"rows of source {claim.source}", table.answer))
            answer = await answered
            if answer is None:
                return Stopped.ROW_GONE
            if isinstance(answer, (RowUnread, Refused, Raised)):
                return answer
            if answer.outcome == "held":
                await asyncio.sleep(_LOCKED_PAUSE)
                continue
            claim.shown, claim.payload = answer, answer.payload
            return None if answer.outcome == "written" and _has_room(answer) else _end_of(answer)

    async def read(self, claim: Claim) -> Outcome | None:
        """Read a row that did not come along with others."""
        while claim.payload is None:
            if (ended := await self.show(claim)) is not None:
                return ended
        return None

    def _new_table(self, source: int) -> _Table:
        table = _Table(RowQuestions(self._connection_of(source), source))
        self._tables[source] = table
        return table


def _has_room(shown: ShownRow) -> bool:
    return shown.size is None or shown.size <= LARGEST_ROW


def _end_of(shown: ShownRow) -> Outcome | None:
    match shown.outcome:
        case "unwanted":
            return Cancel(f"its row of {shown.table} is not wanted any more")
        case "gone":
            return Cancel(f"its row of {shown.table} is gone")
        case "cancelled":
            return Cancel("somebody asked to cancel it before it began")
        case "detached":
            return Cancel("its table is no longer attached")
    if not _has_room(shown):
        return Refused(
            "PayloadRefused",
            f"its row of {shown.table} is {shown.size:,} bytes as JSON, and {LARGEST_ROW:,} are"
            " allowed: attach the table again with --payload and the columns that its handler"
            " needs",
        )
    return None
