"""An outcome that may be premature counts once it was seen several times, with pauses between."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from hybrid_runner.durations import Duration
from hybrid_runner.waiting.look import Look, is_past, now_of
from hybrid_runner.waiting.stored import IN_SECONDS, MOST, Span, check_count, check_span


@dataclass(init=False, slots=True)
class Confirmations:
    """`confirm` says true once it was called at `times` looks that lie `apart` or more.

    A look that contradicts calls `forget`; one that could not tell calls neither.
    """

    __pydantic_config__: ClassVar = IN_SECONDS

    times: Annotated[int, Field(ge=1, le=MOST)]
    apart: Span
    seen: Annotated[int, Field(ge=0)] = 0
    """Confirmations since the last `forget`."""
    last: AwareDatetime | None = None
    """When the last of them was taken, by the database's clock."""

    def __init__(self, times: int = 2, apart: Duration = timedelta(seconds=15)) -> None:
        self.times = check_count("Confirmations: times", times)
        self.apart = check_span("Confirmations: apart", apart)
        self.forget()

    def confirm(self, job: Look) -> bool:
        """It was seen at this look; whether that is enough now."""
        now = now_of(job)
        if self.last is None or is_past(self.last, self.apart, now):
            self.seen, self.last = self.seen + 1, now
            job.count(self, "seen")
            if self.seen == self.times:
                job.count(self, "confirmed")
        elif self.last > now:  # the server's clock was set back
            self.last = now
        return self.seen >= self.times

    def forget(self) -> None:
        """The contrary was seen: begin anew."""
        self.seen, self.last = 0, None
