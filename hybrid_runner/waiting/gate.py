"""A look that is dear is made only now and then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import AwareDatetime, Field

from hybrid_runner.durations import Duration
from hybrid_runner.waiting.look import Look, is_past, now_of
from hybrid_runner.waiting.stored import IN_SECONDS, MOST, Span, check_count, check_span


@dataclass(init=False, slots=True)
class Gate:
    """Opens once the job has run for `after`, then not sooner than `every` again, and `most` times
    at most.
    """

    __pydantic_config__: ClassVar = IN_SECONDS

    after: Span
    every: Span | None = None
    most: Annotated[int, Field(ge=1, le=MOST)] | None = None
    opened: Annotated[int, Field(ge=0)] = 0
    """How often it has opened."""
    last: AwareDatetime | None = None
    """When it last opened, by the database's clock."""

    def __init__(
        self,
        after: Duration = timedelta(0),
        every: Duration | None = None,
        most: int | None = None,
    ) -> None:
        self.after = check_span("Gate: after", after)
        self.every = None if every is None else check_span("Gate: every", every)
        self.most = None if most is None else check_count("Gate: most", most)
        self.opened, self.last = 0, None

    def opens(self, job: Look) -> bool:
        """Whether it opens at this look; if so, it has."""
        now = now_of(job)
        if self.last is not None and self.last > now:  # the server's clock was set back
            self.last = now
        if not self._may_open(job.elapsed, now):
            return False
        self.opened, self.last = self.opened + 1, now
        job.count(self, "opened")
        return True

    def _may_open(self, elapsed: timedelta, now: datetime) -> bool:
        if elapsed < self.after or (self.most is not None and self.opened >= self.most):
            return False
        return self.last is None or self.every is None or is_past(self.last, self.every, now)
