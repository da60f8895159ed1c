"""Finds jobs that were inserted a moment ago. Inserts do not publish anything: transactions would
wait for each other to do so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from hybrid_runner.storage import stream_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.web.stream.reader import Subscription

MARGIN = 2.0
"""Seconds between an insert and its commit up to which the job is found here; a job that takes
longer is shown once it is claimed.
"""
AT_A_TIME = 100
"""New jobs that one round gives out; the rest come with the next."""
MOST_WAITING = 2500
"""New jobs that wait for a round, as many as a second gives out; further ones are left out."""
_DEEPEST = 5000


class NewJobs:
    """Each time reads the ids behind the newest one of two seconds ago; gives out each job once,
    the oldest first.
    """

    def __init__(self) -> None:
        self.wanted: Sequence[Subscription] = ()
        """Written by the stream."""
        self._newest: deque[tuple[float, int]] = deque()
        self._seen: set[int] = set()
        self._waiting: deque[int] = deque()
        self._left_out: int | None = None

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    async def find(self, on: Fetches) -> set[int]:
        """The next new jobs that somebody wants."""
        now = time.monotonic()
        while len(self._newest) > 1 and self._newest[1][0] < now - MARGIN:
            self._newest.popleft()
        queues, kinds = (
            _names([subscription.queue for subscription in self.wanted]),
            _names([subscription.kind for subscription in self.wanted]),
        )
        # The first call finds nothing: it only learns the newest id.
        behind = self._newest[0][1] if self._newest else 2**62
        newest, ids = await stream_calls.find_new_jobs(on, behind, queues, kinds, _DEEPEST)
        if self._newest and newest - _DEEPEST > self._newest[-1][1]:  # not all ids were read
            self._leave_out(0)
        self._newest.append((now, newest))
        self._keep([job_id for job_id in ids if job_id not in self._seen])
        self._seen = set(ids)
        return {self._waiting.popleft() for _ in range(min(AT_A_TIME, len(self._waiting)))}

    def left_out(self) -> int | None:
        """How many new jobs at least were left out since the last call; 0: some, and nobody counted
        them; None: none.
        """
        left_out, self._left_out = self._left_out, None
        return left_out

    def _keep(self, found: Sequence[int]) -> None:
        room = MOST_WAITING - len(self._waiting)
        self._waiting.extend(found[:room])
        if len(found) > room:  # with several subscriptions it is not known whose they were
            self._leave_out(len(found) - room if len(set(self.wanted)) == 1 else 0)

    def _leave_out(self, count: int) -> None:
        self._left_out = (self._left_out or 0) + count


def _names(names: Sequence[str | None]) -> list[str] | None:
    """The names to look for; None: somebody wants all."""
    wanted = [name for name in names if name is not None]
    return None if len(wanted) < len(names) else wanted
