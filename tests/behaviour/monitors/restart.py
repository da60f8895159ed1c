"""Everything stops, all services become overdue, and everything starts again: a burst would hit
whoever shares a host or a network with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.status_monitor.fake.journal import Visit
from examples.status_monitor.fake.server import FakeService
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.monitor_schema import install_monitors
from tests.behaviour.monitors.fakes import Fakes, fake_services
from tests.behaviour.monitors.fleet import Fleet
from tests.behaviour.monitors.laws import Violation
from tests.behaviour.monitors.mix import Outcome
from tests.behaviour.monitors.plan import Planned, store


@dataclass(frozen=True)
class Options:
    services: int = 5_000
    per_host: int = 100
    every: float = 30.0
    members: int = 1
    rounds: int = 2
    """How often each service is polled before and after."""
    patience: float = 20.0
    """Intervals after which it is given up."""
    most: float = 2.0
    """Times the steady rate, in any second. Where the machine stands still for some seconds, what
    was due meanwhile comes at once."""

    @property
    def steady(self) -> float:
        """Polls a second."""
        return self.services / self.every


async def run(dsn: str, options: Options, say: Callable[[str], None] = lambda _: None) -> Outcome:
    planned = [
        Planned(fake.name, fake)
        for fake in (
            FakeService(f"service-{number}", "steady", f"127.0.2.{number // options.per_host + 1}")
            for number in range(options.services)
        )
    ]
    connection = await connect(dsn)
    await install_monitors(connection)
    await connection.execute("CREATE TABLE public.told (event_id bigint NOT NULL)")
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-monitors-") as name:
        folder = Path(name)
        async with fake_services([one.fake for one in planned], folder) as services:
            await store(connection, planned, services.port, options.every)
            fleet = Fleet(options.members, dsn, 5.0, folder)
            say(f"{options.services} new services: {options.steady:.0f} polls a second at rest")
            await fleet.start()
            before = await _visited(services, options, 0)
            await fleet.stop(signal.SIGKILL)
            before = (await services.journal()).visits
            say(f"all is away for {options.every * 1.5:.0f} s: every service is overdue")
            await asyncio.sleep(options.every * 1.5)
            say("it starts again")
            await fleet.start()
            after = await _visited(services, options, len(before))
            await fleet.stop()
    await connection.close()
    return _judge(before, after, options)


async def _visited(services: Fakes, options: Options, beyond: int) -> list[Visit]:
    """The visits behind so many, once each service had enough of them."""
    visits: list[Visit] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(options.patience * options.every):
            while True:
                visits = (await services.journal()).visits[beyond:]
                counts = Counter(visit.service for visit in visits)
                if len(counts) == options.services and min(counts.values()) >= options.rounds:
                    break
                await asyncio.sleep(1)
    return visits


def _judge(before: Sequence[Visit], after: Sequence[Visit], options: Options) -> Outcome:
    violations, figures = list[Violation](), list[tuple[str, str]]()
    for when, visits in (("at the first start", before), ("after the restart", after)):
        most, polled = busiest(visits), len({visit.service for visit in visits})
        figures.append((f"busiest second {when}", f"{most} polls, {most / options.steady:.2f}x"))
        if most > options.most * options.steady:
            violations.append(Violation("a burst", f"{when}: {most} polls in a second"))
        if polled < options.services:
            violations.append(Violation("not all were polled", f"{when}: {polled}"))
    return Outcome(violations, (("polls a second at rest", f"{options.steady:.0f}"), *figures))


def busiest(visits: Sequence[Visit]) -> int:
    """The most visits that began within one second, whichever."""
    begun, most, first = sorted(visit.began for visit in visits), 0, 0
    for last, at in enumerate(begun):
        while begun[first] <= at - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most
