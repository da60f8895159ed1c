"""What a claimed job carries, as its handler takes it."""

from __future__ import annotations

import time
from typing import Any

from pydantic import ValidationError

from hybrid_runner.handlers.json_type import explain
from hybrid_runner.jsontext import printable
from hybrid_runner.model.outcomes import Outcome, Refused
from hybrid_runner.policy.unfit_memory import outcome_of_unfit_memory
from hybrid_runner.worker.run.attempt import Attempt

_LONGEST_REASON = 1000
"""It names what the data has, which may be anything."""


def read_payload(attempt: Attempt) -> tuple[Any, Outcome | None]:
    """The payload, or why the job cannot run; its memory is read as well where it has a type."""
    claim, kind = attempt.claim, attempt.kind
    try:
        payload = kind.decode(claim.payload or "")
    except ValidationError as error:
        reason = f"the payload does not fit {kind.name}: {explain(error)}"
        return None, Refused("PayloadRefused", reason)
    except BaseException as error:  # a validator of the user's may raise anything
        reason = f"the payload of {kind.name} cannot be read: {error}"
        return None, Refused("PayloadRefused", reason)
    return payload, None if kind.memory is None else _read_memory(attempt)


def _read_memory(attempt: Attempt) -> Outcome | None:
    claim, kind = attempt.claim, attempt.kind
    try:
        if attempt.notes is not None:
            attempt.notes.read()
    except ValidationError as error:
        why = explain(error, "data")
    except BaseException as error:  # as above
        why = f"{type(error).__name__}: {error}"
    else:
        return None
    lacks = "has no data, and needs" if claim.data is None else "has data that does not fit"
    reason = printable(f"the job {lacks} {kind.memory_type}: {why}", _LONGEST_REASON)
    now = claim.server_time(time.monotonic())
    return outcome_of_unfit_memory(claim, kind.rules.budgets, reason, now=now)
