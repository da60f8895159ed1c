"""What a handler notes while it runs: the job's memory, and jobs that are to follow."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, TypeVar

from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.new_job_checks import bytes_of_job, check_may_follow
from hybrid_runner.jsontext import NotStorable
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.model.outcomes import (
    NOTHING_LEFT,
    Left,
    Outcome,
    Refused,
    Repeat,
    Snooze,
)
from hybrid_runner.model.uses import Use
from hybrid_runner.waiting.fields import fields_of

_MOST_WALKS = 5
"""How often a memory is walked through for a value that was not there before."""
_NO_FIELDS: Mapping[int, str] = MappingProxyType({})
_UNREAD: Any = object()

Said = TypeVar("Said", bound=Outcome)


def _without_data(outcome: Said) -> Said:
    """The same, whose data is written already. Another one: a handler may return it often."""
    again = copy(outcome)
    vars(again)["data"] = None
    return again


class Notes:
    """Of one attempt. Nothing of it is stored unless the attempt ends with it."""

    __slots__ = (
        "_bytes",
        "_claim",
        "_fields",
        "_follow_ups",
        "_is_used",
        "_kind",
        "_memory",
        "_walks",
    )

    def __init__(self, claim: Claim, kind: JobKind[Any, Any]) -> None:
        self._claim = claim
        self._kind = kind
        self._memory: Any = _UNREAD
        self._is_used = False
        """Whether the handler has asked for it, or replaced it."""
        self._bytes = 0
        self._follow_ups: list[NewJob] = []
        self._fields = _NO_FIELDS
        self._walks = 0

    def read(self) -> None:
        """Read the job's memory; ValidationError when what is stored does not fit its type."""
        if self._memory is _UNREAD:
            self._memory = self._kind.read_memory(self._claim.data)

    @property
    def memory(self) -> Any:
        """The job's memory: the same object each time."""
        self._is_used = True
        self.read()
        return self._memory

    @memory.setter
    def memory(self, value: Any) -> None:
        self._is_used = True
        self._memory = value

    def count(self, value: object, use: Use) -> None:
        """A value of the memory was used. Counted once the attempt has ended."""
        if self._claim.uses is None:
            self._claim.uses = {}
        uses = self._claim.uses
        named = use, self._field_of(value)
        uses[named] = uses.get(named, 0) + 1

    def _field_of(self, value: object) -> str:
        """The name of the field that holds it; empty if none does."""
        if id(value) not in self._fields and self._walks < _MOST_WALKS:
            self._walks += 1  # a handler may put new ones into its memory
            self._fields = fields_of(self._memory)
        return self._fields.get(id(value), "")

    @property
    def follow_ups(self) -> tuple[NewJob, ...]:
        """Jobs that are to follow."""
        return tuple(self._follow_ups)

    def follow(self, job: NewJob) -> None:
        """One more job is to follow; ConfigurationError when they are too many."""
        size = self._bytes + bytes_of_job(job)
        check_may_follow(len(self._follow_ups) + 1, size)
        self._bytes = size
        self._follow_ups.append(job)

    def leave(self, outcome: Said) -> tuple[Said | Refused, Left]:
        """The outcome, and what is left beside it; another outcome when the memory cannot be
        stored.
        """
        if isinstance(outcome, (Snooze, Repeat)):
            try:
                left = Left(self.follow_ups, self._changed(outcome))
                is_written = left.data is not None and outcome.data is not None
                return _without_data(outcome) if is_written else outcome, left
            except NotStorable as error:  # another attempt would end the same way
                return Refused("DataRefused", str(error)), NOTHING_LEFT
        return outcome, Left(self.follow_ups) if self._follow_ups else NOTHING_LEFT

    def _changed(self, outcome: Snooze | Repeat) -> str | None:
        """The memory as JSON text; None when it is what is stored already."""
        if outcome.data is not None:
            if self._kind.memory is None:
                return None  # as it is, whatever it is
            return self._kind.write_memory(outcome.data, f"the data of {type(outcome).__name__}")
        if not self._is_used or self._kind.is_memory(self._memory, self._claim.data):
            return None
        return self._kind.write_memory(self._memory, "job.data")
