"""Who may ask now: so many at a time of a host, and one at a time of an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from yarl import URL

from hybrid_runner.monitors.answers.address_key import address_key
from hybrid_runner.resilience.host_limits import HostLimits


class Turns:
    """Those of one process. A redirect counts for whom it leads to, not for whom it came from."""

    def __init__(self, per_host: int) -> None:
        self._hosts = HostLimits(per_host)
        self._addresses: dict[str, _Address] = {}

    @asynccontextmanager
    async def turn(self, url: str) -> AsyncIterator[Turn]:
        """Wait for the turn of this address, and hold it for as long as the block runs."""
        async with AsyncExitStack() as held:
            turn = Turn(self, held)
            await turn.move(url)
            yield turn

    @asynccontextmanager
    async def asking(self, url: str) -> AsyncIterator[None]:
        """The address first: who has a place at a host waits for nothing, so nobody waits for
        ever.
        """
        async with self._only(address_key(url)), self._hosts.place(_host(url)):
            yield

    @asynccontextmanager
    async def _only(self, key: str) -> AsyncIterator[None]:
        address = self._addresses.setdefault(key, _Address())
        address.wanted += 1
        try:
            async with address.lock:
                yield
        finally:
            address.wanted -= 1
            if not address.wanted:
                del self._addresses[key]


class Turn:
    """A place at a host and an address, which may move on."""

    def __init__(self, turns: Turns, held: AsyncExitStack) -> None:
        self._turns = turns
        self._held = held

    async def move(self, url: str) -> None:
        """Give this one back, and wait for that of another address."""
        await self._held.aclose()
        await self._held.enter_async_context(self._turns.asking(url))


class _Address:
    __slots__ = ("lock", "wanted")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0


def _host(url: str) -> str:
    try:
        return URL(url).raw_host or url
    except ValueError:  # nothing will be asked
        return url
