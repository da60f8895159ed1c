"""Polling the services of a host, a few at a time, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import aiohttp

from hybrid_runner.model.monitors import Polled, Service
from hybrid_runner.monitors.answers.address_key import grouped
from hybrid_runner.monitors.answers.addresses import AddressRules
from hybrid_runner.monitors.answers.poll import poll_group
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.answers.session import open_session
from hybrid_runner.policy.connectivity import Connectivity
from hybrid_runner.resilience.host_limits import HostLimits
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
        self._limits = HostLimits(per_host)
        self._rules = rules
        self._secrets = secrets
        self._counters = counters
        self._connectivity = Connectivity()
        self._session: aiohttp.ClientSession | None = None
        self._users = 0

    @property
    def is_cut_off(self) -> bool:
        """Whether this process has no network, as far as its last polls can tell."""
        return self._connectivity.is_cut_off(time.monotonic())

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connections are kept while anybody polls."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._session is not None:
                session, self._session = self._session, None
                await session.close()

    async def poll(
        self, host: str, services: Sequence[Service], now: datetime, until: float, found: Found
    ) -> None:
        """Poll them in their order; those that share an address with one request. None is begun
        after `until`, by the monotonic clock.
        """
        began = time.monotonic()
        groups = iter(grouped(services))

        async def poll_some() -> None:
            for group in _until(groups, until):
                async with self._limits.place(host):  # given back as this one ends
                    self._counters.count_host_wait(time.monotonic() - began)
                    await self._poll_group(host, group, now, found)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._per_host):
                tasks.create_task(poll_some())

    async def _poll_group(
        self, host: str, group: Sequence[Service], now: datetime, found: Found
    ) -> None:
        if self._session is None:
            self._session = open_session(self._rules)
        polls = await poll_group(self._session, group, now=now, secrets=self._secrets)
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
            [polled] = await poll_group(session, [service], now=now, secrets=self._secrets)
        return polled


def _until(groups: Iterator[Sequence[Service]], until: float) -> Iterator[Sequence[Service]]:
    while time.monotonic() < until:
        group = next(groups, None)
        if group is None:
            return
        yield group
