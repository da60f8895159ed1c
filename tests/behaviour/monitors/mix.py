"""Services, a fleet whose members are killed, and then the laws."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.status_monitor.fake.journal import Journal
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.monitor_schema import install_monitors
from tests.behaviour.monitors.fakes import fake_services
from tests.behaviour.monitors.fleet import Fleet
from tests.behaviour.monitors.laws import Violation, check
from tests.behaviour.monitors.plan import plan, store
from tests.behaviour.monitors.records import Records, read
from tests.support.waiting import until_fetched

PER_HOST = 40
_WORKING = """
    SELECT count(*) FROM hybrid_runner.jobs
    WHERE (queue = 'monitors' AND state = 'running') OR queue = 'monitors-events'
"""
_PATIENCE = 90.0


@dataclass(frozen=True)
class Options:
    seconds: float = 300.0
    services: int = 1_000
    members: int = 3
    lease: float = 15.0
    kill_every: float = 12.0
    seed: int = 7


@dataclass(frozen=True)
class Outcome:
    violations: list[Violation]
    figures: tuple[tuple[str, str], ...]


async def mix(dsn: str, options: Options, say: Callable[[str], None] = lambda _: None) -> Outcome:
    planned = plan(options.services, PER_HOST)
    connection = await connect(dsn)
    await install_monitors(connection)
    await connection.execute("CREATE TABLE public.told (event_id bigint NOT NULL)")
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-monitors-") as name:
        folder = Path(name)
        fakes = {service.fake.name: service.fake for service in planned}
        async with fake_services(fakes.values(), folder) as services:
            await store(connection, planned, services.port)
            fleet = Fleet(options.members, dsn, options.lease, folder)
            await fleet.start()
            try:
                say(f"{options.members} workers poll {options.services} services")
                chance = random.Random(options.seed)
                await fleet.kill_for(options.seconds, options.kill_every, chance)
                say("no more deaths: the rounds that go on may end")
                await _come_to_rest(connection)
            finally:
                await fleet.stop()
            journal = await services.journal()
        records = await read(connection)
        logs = await asyncio.to_thread(_troubles, folder)
        declared = await asyncio.to_thread(_declared_dead, folder)
    await connection.close()
    violations = list(check(planned, journal, records, fleet.killed))
    violations += [Violation("the fleet", complaint) for complaint in fleet.complaints]
    violations += [Violation("the log", line) for line in logs]
    figures = _figures(journal, records, fleet)
    return Outcome(violations, (*figures, ("workers that were declared dead and lived", declared)))


async def _come_to_rest(connection: Connection) -> None:
    """No round begins any more; those that go on end, and all is told."""
    await connection.execute("SELECT hybrid_runner.pause('monitors')")
    await until_fetched(connection, _WORKING, 0, patience=_PATIENCE)


def _declared_dead(folder: Path) -> str:
    """Of these the laws cannot hold: their polls are on their way while somebody else's are."""
    texts = [log.read_text(encoding="utf-8", errors="replace") for log in folder.glob("*.log")]
    return str(sum(text.count('"worker.declared_dead"') for text in texts))


def _troubles(folder: Path) -> list[str]:
    """Lines about rounds that raised."""
    lines = [
        line
        for log in folder.glob("*.log")
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    return [line[:500] for line in lines if "monitors.round" in line and "Traceback" in line][:3]


def _figures(journal: Journal, records: Records, fleet: Fleet) -> tuple[tuple[str, str], ...]:
    good = sum(map(len, records.stored.values()))
    failed = sum(event.kind == "poll:error" for event in records.events)
    probes = sum(event.kind == "circuit:open" for event in records.events)
    changes = sum(event.kind == "status:change" for event in records.events)
    return (
        ("workers killed", f"{len(fleet.killed)}"),
        ("visits of services", f"{len(journal.visits):,}"),
        ("polls stored", f"{good:,} good, {failed:,} failed"),
        ("events", f"{len(records.events):,}"),
        ("changes of health, each told as a job", f"{changes:,}"),
        ("breakers opened", f"{probes:,}"),
        ("most polls at a time for a host", f"{journal.most_at_host()}"),
        ("most polls at a time for an address", f"{journal.most_at_address()}"),
    )
