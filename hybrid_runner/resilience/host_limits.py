"""At most so many calls at a time to one host."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.resilience.numbers import is_count


class HostLimits:
    """Places for calls, `per_host` of them for each host; whoever waits for one is served in order.
    Names of hosts are the same in capitals, and with a dot at the end.
    """

    def __init__(self, per_host: int = 5) -> None:
        if not is_count(per_host, 1):
            raise ConfigurationError(f"per_host must be a whole number from 1 on, not {per_host!r}")
        self._per_host = per_host
        self._hosts: dict[str, _Host] = {}
        self.waits = 0
        """How often somebody had to wait for a place."""
        self.refusals = 0
        """How often `try_place` had none."""

    @property
    def hosts(self) -> int:
        """How many hosts are called now: no others are remembered."""
        return len(self._hosts)

    def held(self, host: str) -> int:
        """How many places of the host are taken."""
        known = self._hosts.get(_name(host))
        return 0 if known is None else known.held

    @asynccontextmanager
    async def place(self, host: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it for as long as the block runs."""
        with await self.take(host):
            yield

    async def take(self, host: str) -> Place:
        """Wait for a place, to be used in a `with`."""
        name = _name(host)
        if not self._take(name):
            await self._wait(name)
        return Place(self, name)

    def try_place(self, host: str) -> Place | None:
        """A place, to be used in a `with`; None if there is none now, or others wait for one."""
        name = _name(host)
        if self._take(name):
            return Place(self, name)
        self.refusals += 1
        return None

    def _take(self, name: str) -> bool:
        host = self._hosts.setdefault(name, _Host())
        if host.held >= self._per_host:
            return False  # nobody waits unless all are taken: a place goes from hand to hand
        host.held += 1
        return True

    async def _wait(self, name: str) -> None:
        waiting, mine = self._hosts[name].waiting, asyncio.get_running_loop().create_future()
        waiting.append(mine)
        self.waits += 1
        try:
            await mine
        except BaseException:
            if mine.done() and not mine.cancelled():  # it was given the place in the same moment
                self._give_back(name)
            elif mine in waiting:  # else a place was passed on over its head
                waiting.remove(mine)
            raise

    def _give_back(self, name: str) -> None:
        host = self._hosts[name]
        while host.waiting:
            if not (following := host.waiting.popleft()).done():
                following.set_result(None)
                return
        host.held -= 1
        if not host.held:
            del self._hosts[name]


class Place:
    """A place of a host; it is given back at the end of the `with`, and only once."""

    def __init__(self, limits: HostLimits, name: str) -> None:
        self._limits: HostLimits | None = limits
        self._name = name

    def give_back(self) -> None:
        """Another call may have it now."""
        limits, self._limits = self._limits, None
        if limits is not None:
            limits._give_back(self._name)  # noqa: SLF001  # a place is a part of its limits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


class _Host:
    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        self.held = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


def _name(host: object) -> str:
    if not isinstance(host, str) or not host:
        raise ConfigurationError(f"host must be the name of a host, not {host!r}")
    return host.lower().removesuffix(".")
