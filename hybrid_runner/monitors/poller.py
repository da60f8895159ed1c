"""Polling the services of a host, a few at a time, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import aiohttp

from hybrid_runner.model.monitors import Polled, Service
from hybrid_runner.monitors.answers.address_key import grouped
from hybrid_runner.monitors.answers.addresses import AddressRules
from hybrid_runner.monitors.answers.poll import poll_group
from hybrid_runner.monitors.answers.prepared import Preparations
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.answers.session import open_session
from hybrid_runner.monitors.turns import Turn, Turns
from hybrid_runner.policy.connectivity import Connectivity
from hybrid_runner.telemetry.metrics.monitor_counters import MonitorCounters

Found = Callable[[Service, Polled], None]


class Poller:
    """One for all rounds of a process."""

    def __init__(
        self,
        per_host: int,
        rules: AddressRules,
        secrets: Mapping[str, Secret],
        counters: MonitorCounters,
    ) -> None:
        self._per_host = per_host
        self._turns = Turns(per_host)
        self._rules = rules
        self._preparations = Preparations(secrets)
        self._counters = counters
        self._connectivity = Connectivity()
        self._kept: _Kept | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether this process has no network, as far as its last polls can tell."""
        return self._connectivity.is_cut_off(time.monotonic())

    async def poll(
        self,
        host: str,
        services: Sequence[Service],
        now: datetime,
        until: float,
        found: Found,
        well: Container[int] = (),
    ) -> None:
        """Poll them in their order; those that share an address with one request. None is begun
        after `until`, by the monotonic clock. `well` as `poll_group` has it.
        """
        began = time.monotonic()
        groups = iter(grouped(services, self._preparations.key))
        session = await self._session()

        async def poll_some() -> None:
            for group in _until(groups, until):
                address, *_ = self._preparations.key(group[0])
                async with self._turns.turn(host, address) as turn:  # given back as this one ends
                    self._counters.count_host_wait(time.monotonic() - began)
                    await self._poll_group(session, host, group, now, found, well, turn)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._per_host):
                tasks.create_task(poll_some())

    async def _poll_group(
        self,
        session: aiohttp.ClientSession,
        host: str,
        group: Sequence[Service],
        now: datetime,
        found: Found,
        well: Container[int],
        turn: Turn,
    ) -> None:
        polls = await poll_group(
            session, group, now=now, preparations=self._preparations, well=well, move=turn.move
        )
        first = polls[0]
        self._connectivity.note(host, is_local=first.is_local, at=time.monotonic())
        self._counters.count_request(first.phases)
        if len(group) > 1:
            self._counters.count_coalesced(len(group) - 1)
        for service, polled in zip(group, polls, strict=True):
            found(service, polled)

    async def preview(self, service: Service, now: datetime) -> Polled:
        """One poll of a service that is stored nowhere."""
        async with open_session(self._rules) as session:
            [polled] = await poll_group(
                session, [service], now=now, preparations=self._preparations
            )
        return polled

    async def _session(self) -> aiohttp.ClientSession:
        """One for an event loop, from its first poll until it ends: what the next round asks of a
        host goes over the connections that the last one has left, if it comes soon.
        """
        loop = asyncio.get_running_loop()
        if self._kept is None or self._kept.loop is not loop:
            session = open_session(self._rules)
            self._kept = _Kept(loop, session)
            _UNTIL_LOOPS_END[session] = _close_with_loop(session)
            await anext(_UNTIL_LOOPS_END[session])
        return self._kept.session


class _Kept(NamedTuple):
    """The session of an event loop."""

    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession


_UNTIL_LOOPS_END: dict[aiohttp.ClientSession, AsyncGenerator[None, None]] = {}
"""Also of monitors that nobody has any more: what is garbage cannot await its end."""


async def _close_with_loop(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    # asyncio.run and the like close open generators (loop.shutdown_asyncgens).
    try:
        yield
    finally:
        _UNTIL_LOOPS_END.pop(session, None)
        await session.close()


def _until(groups: Iterator[Sequence[Service]], until: float) -> Iterator[Sequence[Service]]:
    while time.monotonic() < until:
        group = next(groups, None)
        if group is None:
            return
        yield group
