"""What became of this worker's jobs: counted, and said in one log line each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from hybrid_runner.happenings import Search, Writing
from hybrid_runner.jsontext import decode
from hybrid_runner.models import Claim, State
from hybrid_runner.outcomes import Finished, Requeued, Settlement

log = logging.getLogger("hybrid_runner.worker")

_WORDS = {state: state.value for state in State}  # plain ones: JSON takes no other keys, and .value is slow


class Tally:
    """Counts by final state, and by why jobs were put back."""

    def __init__(self) -> None:
        self.settled: Counter[str] = Counter()

    def ended(self) -> int:
        """Jobs that have ended here, in whatever state."""
        return self.settled["completed"] + self.settled["failed"] + self.settled["cancelled"]

    def searched(self, search: Search) -> None:
        """What is found is the claimer's to count."""

    def rescued(self, settled: Sequence[Settlement]) -> None:
        """What is rescued is the rescuer's to count."""

    def wrote(self, writing: Writing) -> None:
        """Postgres has them."""
        for settlement in writing.settled:
            if isinstance(settlement, Finished):
                self._note_end(settlement)
            else:
                self._note_return(settlement)

    def _note_end(self, ended: Finished) -> None:
        self.settled[_WORDS[ended.state]] += 1
        level = logging.DEBUG if ended.state is State.COMPLETED else logging.WARNING
        if log.isEnabledFor(level):
            claim, why = ended.claim, _reason(ended.error)
            log.log(
                level, "%s %s, archived after attempt %d%s", claim.kind, ended.state.value, claim.attempt, why, extra=_about(claim)
            )

    def _note_return(self, returned: Requeued) -> None:
        self.settled[returned.why] += 1
        level = logging.WARNING if returned.error else logging.INFO
        claim, why, delay = returned.claim, _reason(returned.error), returned.delay.total_seconds()
        log.log(level, "%s %s: queued again, due in %.1f s%s", claim.kind, returned.why, delay, why, extra=_about(claim))


def _about(claim: Claim) -> dict[str, object]:
    return {"job": claim.id, "queue": claim.queue, "kind": claim.kind}


def _reason(error: str | None) -> str:
    """What an entry of `errors` says, for one log line."""
    if error is None:
        return ""
    entry = decode(error)
    message = " ".join(str(entry.get("message", "")).split())
    return f": {entry.get('kind')}: {message[:300]}"
