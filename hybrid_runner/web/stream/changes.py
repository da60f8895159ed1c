"""Hears which jobs have changed, and keeps telling workers that somebody reads; on one connection,
while somebody reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.messages import CHANGES, JobsChanged
from hybrid_runner.storage import stream_calls
from hybrid_runner.worker.listener import Listener

LEASE = timedelta(seconds=6)
"""For how long each announcement of readers is good: that long workers speak to nobody after a page
server has died.
"""
RENEWAL = 2.0
"""Seconds between two renewals; a worker that comes new, or missed one, hears the next."""
SPREADING = 1.0
"""Seconds after the first announcement in which some workers may not have heard of it."""
_PROOF = 2.0


class Changes:
    """`run` for as long as somebody reads; `heard` is told of changes, `turned` when hearing begins
    or ends.
    """

    def __init__(
        self, dsn: str, heard: Callable[[JobsChanged], None], turned: Callable[[], None]
    ) -> None:
        self._heard = heard
        self._turned = turned
        self._listener = Listener(dsn)
        self._listener.hear(CHANGES, self._on_message)
        self._lit_until = 0.0
        self._renew_at = 0.0
        self._spread_at = 0.0

    @property
    def complete(self) -> bool:
        """Whether all that changes is heard of: we hear, and every worker knows that somebody
        does.
        """
        return self._listener.hearing and self._lit_until > time.monotonic() > self._spread_at

    async def run(self) -> None:
        """Listen until cancelled."""
        await self._listener.run(self._on_turn)

    async def keep_lit(self) -> None:
        """Announce the readers again if it is time; a ring to ourselves shows that we still
        hear.
        """
        now = time.monotonic()
        if not self._listener.hearing or now < self._renew_at:
            return
        self._renew_at = now + RENEWAL
        try:
            await stream_calls.announce_readers(self._listener, LEASE)
        except RunnerError:
            return  # the listener knows, and connects again
        if now > self._lit_until:
            self._spread_at = time.monotonic() + SPREADING
        self._lit_until = now + LEASE.total_seconds() - RENEWAL
        await self._listener.prove(_PROOF)

    def _on_turn(self) -> None:
        self._renew_at = self._lit_until = 0.0
        self._turned()

    def _on_message(self, change: JobsChanged, _pid: int) -> None:
        self._heard(change)
