"""Who may ask now: so many at a time of a host, and one at a time of an address."""

from __future__ import annotations

from typing import Self

from yarl import URL

from hybrid_runner.monitors.answers.address_key import address_key
from hybrid_runner.resilience.host_limits import HostLimits, Place


class Turns:
    """Those of one process. A redirect counts for whom it leads to, not for whom it came from."""

    def __init__(self, per_host: int) -> None:
        self.hosts = HostLimits(per_host)
        # Whether two that differ in capitals alone are one matters to nobody.
        self.addresses = HostLimits(1)

    def turn(self, host: str, address: str) -> Turn:
        """To be used in an `async with`, which waits for it, and gives it back."""
        return Turn(self, host, address)


class Turn:
    """A place at a host and an address, which may move on. It waits for the address first: who has
    a place at a host waits for nothing, so nobody waits for ever.
    """

    __slots__ = ("_address", "_held", "_host", "_turns")

    def __init__(self, turns: Turns, host: str, address: str) -> None:
        self._turns = turns
        self._host = host
        self._address = address
        self._held: list[Place] = []

    async def __aenter__(self) -> Self:
        await self._take(self._host, self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    async def move(self, url: URL) -> None:
        """Give this one back, and wait for that of another address."""
        self._give_back()
        await self._take(url.host or "", address_key(str(url)))

    async def _take(self, host: str, address: str) -> None:
        try:
            self._held.append(await self._turns.addresses.take(address))
            # as yarl has the host of [::1]
            self._held.append(await self._turns.hosts.take(host.strip("[]") or address))
        except BaseException:
            self._give_back()
            raise

    def _give_back(self) -> None:
        while self._held:
            self._held.pop().give_back()
