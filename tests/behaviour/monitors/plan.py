"""Which services there are, and what each plays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from examples.status_monitor.fake.answers import Reply
from examples.status_monitor.fake.scripts import SCRIPTS, Moment
from examples.status_monitor.fake.server import FakeService
from hybrid_runner.storage.connections.connection import Connection

FAILURES = 4
"""Failed polls in a row that open a breaker."""
COOLDOWN = 20.0
EVERY = 5.0
TIMEOUT = 2.0
SHARED = "shared"
"""Of an address that two services have in common."""
MIX = (
    *("healthy",) * 18,
    *("flapping",) * 7,
    *("slow",) * 4,
    *("failing",) * 3,
    *("recovering",) * 3,
    "hanging_at_times",
    "closing",
    "lying",
    "skipping",
    "warning",
)
"""What forty services of a host play; two of them share the address of the first."""


@dataclass(frozen=True)
class Planned:
    """A service as it is stored, and the fake that it asks."""

    name: str
    fake: FakeService

    def says(self, visit: int) -> dict[str, bool] | None:
        """What that visit was told of each dependency; None: a failed poll."""
        return said(self.fake.plays, self.fake.number, visit)


def said(script: str, number: int, visit: int) -> dict[str, bool] | None:
    """What the answer to one visit means."""
    answer = SCRIPTS[script](Moment(number, visit))
    if not isinstance(answer, Reply) or answer.status != 200:
        return None
    items = json.loads(answer.body)
    return {item["name"]: item["healthy"] or item.get("skipped", False) for item in items}


def plan(services: int, per_host: int) -> list[Planned]:
    """So many services; every fortieth has the address of the one before it."""
    planned: list[Planned] = []
    for number in range(services):
        host = f"127.0.2.{number // per_host + 1}"
        if number % len(MIX) == 1:
            planned.append(Planned(f"{SHARED}-{number}", planned[-1].fake))
        else:
            name = f"service-{number}"
            fake = FakeService(name, MIX[number % len(MIX)], host, number)
            planned.append(Planned(name, fake))
    return planned


async def store(
    connection: Connection, planned: Sequence[Planned], port: int, every: float = EVERY
) -> None:
    """By plain SQL, in one statement, as an application would."""
    await connection.execute(
        """
        INSERT INTO hybrid_monitors.services (name, url, every, timeout, headers)
        SELECT name, url, make_interval(secs => $3), make_interval(secs => $4),
               '{"X-Worker": "{worker}"}'
        FROM unnest($1::text[], $2::text[]) AS new (name, url)
        """,
        [service.name for service in planned],
        [
            f"http://{service.fake.host}:{port}/{service.fake.name}/dependencies"
            for service in planned
        ],
        every,
        TIMEOUT,
    )
