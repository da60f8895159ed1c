"""Hears which jobs have changed, and keeps telling workers that somebody reads; on one connection, while somebody reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from hybrid_runner.errors import RunnerError
from hybrid_runner.models import id_in
from hybrid_runner.storage import standings
from hybrid_runner.worker.listener import CHANNEL, Listener
from hybrid_runner.worker.publisher import CHANGES

LEASE = timedelta(seconds=6)
"""For how long each announcement of readers is good: that long workers speak to nobody after a page server has died."""
RENEWAL = 2.0
"""Seconds between two renewals; a worker that comes new, or missed one, hears the next."""
SPREADING = 1.0
"""Seconds after the first announcement in which some workers may not have heard of it."""
_PROOF = 2.0


class Change(NamedTuple):
    """What one message says."""

    queue: str
    kind: str
    more: int
    """How many ids had no room."""
    ids: tuple[int, ...]


class Changes:
    """`run` for as long as somebody reads; `heard` is told of changes, `turned` when hearing begins or ends."""

    def __init__(self, dsn: str, heard: Callable[[Change], None], turned: Callable[[], None]) -> None:
        self._heard = heard
        self._turned = turned
        self._listener = Listener(dsn, [CHANGES], self._on_message, self._on_turn)
        self._lit_until = 0.0
        self._renew_at = 0.0
        self._spread_at = 0.0

    @property
    def complete(self) -> bool:
        """Whether all that changes is heard of: we hear, and every worker knows that somebody does."""
        return self._listener.hearing and self._lit_until > time.monotonic() > self._spread_at

    async def run(self) -> None:
        """Listen until cancelled."""
        await self._listener.run()

    async def keep_lit(self) -> None:
        """Announce the readers again if it is time; a ring to ourselves shows that we still hear."""
        now = time.monotonic()
        if not self._listener.hearing or now < self._renew_at:
            return
        self._renew_at = now + RENEWAL
        try:
            await standings.announce_readers(self._listener, LEASE)
        except RunnerError:
            return  # the listener knows, and connects again
        if now > self._lit_until:
            self._spread_at = time.monotonic() + SPREADING
        self._lit_until = now + LEASE.total_seconds() - RENEWAL
        if (proof := self._listener.proof_channel) is not None:
            await self._listener.ring(proof.removeprefix(CHANNEL), "proof")
            self._listener.expect_proof(proof, now, _PROOF)

    def _on_turn(self) -> None:
        self._renew_at = self._lit_until = 0.0
        self._turned()

    def _on_message(self, _channel: str, payload: str, _pid: int) -> None:
        if (change := parse(payload)) is not None:
            self._heard(change)


def parse(payload: str) -> Change | None:
    """A message from a stranger; None if it is none of ours."""
    words = payload.split(" ")
    numbers = [number for word in words[2:] if (number := id_in(word)) is not None]
    if len(words) < 4 or len(numbers) < len(words) - 2:
        return None
    more, *ids = numbers
    return Change(words[0], words[1], more, tuple(ids))
