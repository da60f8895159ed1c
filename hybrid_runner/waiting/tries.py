"""A bounded number of tries, at a pace of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.outcomes import Snooze
from hybrid_runner.waiting.backoff import Backoff
from hybrid_runner.waiting.look import Look
from hybrid_runner.waiting.stored import MOST, StoredBackoff, check_count, exact

_USUAL_PACE = Backoff("1.5s", cap="8s")


@dataclass(init=False, slots=True)
class Tries:
    """`again` is the snooze until the next try, None once `most` are used up."""

    most: Annotated[int, Field(ge=1, le=MOST)]
    pace: StoredBackoff
    used: Annotated[int, Field(ge=0)] = 0
    """How often it was tried again."""

    def __init__(self, most: int = 6, pace: Backoff = _USUAL_PACE) -> None:
        if not isinstance(pace, Backoff):
            raise ConfigurationError(f"Tries: pace must be a Backoff, not {pace!r}")
        self.most = check_count("Tries: most", most)
        self.pace = exact(pace)
        self.forget()

    def again(self, job: Look) -> Snooze | None:
        """Try again after a pause, if there is a try left."""
        if self.used >= self.most:
            job.count(self, "used_up")
            return None
        pause = self.pace.delay(self.used, job.chance)
        self.used += 1
        job.count(self, "again")
        return Snooze(pause)

    def forget(self) -> None:
        """Begin anew, with all tries."""
        self.used = 0
