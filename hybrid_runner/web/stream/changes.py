"""Hears which jobs have changed, and keeps announcing to workers that somebody reads. Has a
connection only while somebody does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.messages import Channel, JobsChanged
from hybrid_runner.storage import stream_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.listener import Listener

LEASE = timedelta(seconds=6)
"""For how long an announcement of readers is good. For so long workers publish changes to nobody
after a page server has died.
"""
RENEWAL = 2.0
"""Seconds between two announcements; a worker that is new, or missed one, hears the next."""
SPREADING = 1.0
"""Seconds after the first announcement in which some workers may not have heard it yet."""
_PROOF = 2.0


async def _changes_channel(on: Fetches) -> Channel[JobsChanged]:
    return (await stream_calls.stream_readers(on)).channel


class ChangeListener:
    """Runs for as long as somebody reads: `run` is a task of the stream."""

    def __init__(
        self,
        dsn: str,
        on_change: Callable[[JobsChanged], None],
        on_hearing_changed: Callable[[], None],
    ) -> None:
        self._on_change = on_change
        self._on_hearing_changed = on_hearing_changed
        self._listener = Listener(dsn)
        self._listener.hear_where(_changes_channel, self._on_message)
        self._announced_until = 0.0
        self._renew_at = 0.0
        self._spread_at = 0.0

    @property
    def complete(self) -> bool:
        """Whether all changes that workers make are heard: we listen, and every worker knows of
        the readers.
        """
        return self._listener.hearing and self._announced_until > time.monotonic() > self._spread_at

    async def run(self) -> None:
        """Listen until cancelled."""
        await self._listener.run(self._on_listener_changed)

    async def announce(self) -> None:
        """Announce the readers again if it is time, and test with a ring to ourselves whether we
        still hear.
        """
        now = time.monotonic()
        if not self._listener.hearing or now < self._renew_at:
            return
        self._renew_at = now + RENEWAL
        try:
            await stream_calls.announce_readers(self._listener, LEASE)
        except RunnerError:
            return  # the listener notices too, and connects again
        if now > self._announced_until:
            self._spread_at = time.monotonic() + SPREADING
        self._announced_until = now + LEASE.total_seconds() - RENEWAL
        await self._listener.prove(_PROOF)

    def _on_listener_changed(self) -> None:
        self._renew_at = self._announced_until = 0.0
        self._on_hearing_changed()

    def _on_message(self, change: JobsChanged, _pid: int) -> None:
        self._on_change(change)
