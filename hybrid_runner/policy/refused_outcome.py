"""What is written of an outcome that Postgres does not take."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

import orjson

from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import RefusalType
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement
from hybrid_runner.policy.settlement import error_text

_REFUSED = "Postgres refused the outcome: "


def reduced(settlement: Settlement, why: str, now: datetime) -> Settlement | None:
    """The same in ASCII; then without what its handler said: the job
    has failed, and `why` says so. None: nothing is left that could be taken out.
    """
    if not isinstance(settlement, Repeated) and not (settlement.error or "").isascii():
        return settlement._replace(error=in_ascii(settlement.error or ""))
    if _says_nothing(settlement):
        return None
    is_result = (
        isinstance(settlement, Finished)
        and settlement.result is not None
        and not settlement.follow_ups
    )
    error_type: RefusalType = "ResultRefused" if is_result else "OutcomeRefused"
    reason = error_text(settlement.claim, now, error_type, f"{_REFUSED}{why}")
    return Finished(settlement.claim, State.FAILED, error=in_ascii(reason))


def in_ascii(error: str) -> str:
    """An entry of a job's `errors` with other characters written as Python writes them. As JSON's
    escapes they would be what they were once Postgres has read them.
    """
    entry = {
        name: value.encode("ascii", "backslashreplace").decode()
        if isinstance(value, str)
        else value
        for name, value in orjson.loads(error).items()
    }
    return orjson.dumps(entry).decode()


def _says_nothing(settlement: Settlement) -> bool:
    """Whether nothing of its handler's is left in it."""
    match settlement:
        case Finished(follow_ups=(_, *_)) | Repeated(follow_ups=(_, *_)):
            return False
        case Finished(result=None, error=None) | Requeued(data=None, error=None, wake_on=None):
            return True
        case Finished(result=None, state=State.FAILED, error=str(error)):
            return str(orjson.loads(error)["message"]).startswith(_REFUSED)
        case Repeated():
            return settlement.data is None and settlement.wake_on is None
        case Finished() | Requeued():
            return False
        case _:
            assert_never(settlement)
