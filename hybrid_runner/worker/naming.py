"""Gives what a handler returned its name: one of the outcomes."""

from __future__ import annotations

from typing import Any

from hybrid_runner.jsontext import NotStorable
from hybrid_runner.outcomes import Cancel, Completed, Fail, Outcome, Retry, Snooze
from hybrid_runner.registry import JobKind


def name_outcome(kind: JobKind[Any, Any], said: Any) -> Outcome:
    """What a handler returned, as an outcome."""
    match said:
        case Snooze() | Retry() | Fail() | Cancel():
            return said
        case _:
            try:
                return Completed(kind.encode_result(said))
            except NotStorable as error:  # again would end the same way
                return Fail(f"{kind.name} ran, but {error}")
