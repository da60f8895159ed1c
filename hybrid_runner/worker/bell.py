"""A queue's doorbell, as the listener's session reaches it: the lock of those who sleep has to end with that session."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.policy.doorbell import Manner
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import Fetches


class Bell:
    """Each call is one statement; it raises when the session is gone."""

    def __init__(self, on: Fetches, mute: timedelta) -> None:
        self._on = on
        self._mute = mute

    async def open(self, queue: str, *, lie_down: bool) -> None:
        """From now on every insert rings."""
        await statements.open_bell(self._on, queue, take_sleep_lock=lie_down)

    async def mute(self, queue: str, manner: Manner, *, rise: bool) -> bool:
        """Inserts are quiet for a moment; whether somebody sleeps and was rung for help."""
        return await statements.mute_bell(self._on, queue, self._mute, manner.value, drop_sleep_lock=rise)

    async def witness(self) -> int:
        """A number above all transactions in flight."""
        return await statements.mark_in_flight(self._on)

    async def ended(self, below: int) -> bool:
        """Whether all transactions below a number have ended."""
        return await statements.inserts_ended(self._on, below)
