"""A heartbeat names the attempts whose rows have gone, and no others, whatever happens while it is
on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.model.news import RowGone
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.beats import told
from tests.support.jobs import KINDS, claim, enqueue, living

LIVES = {
    "ends by itself": ("claim", "start", "leave", "settle"),
    "is completed by its handler, which goes on": ("claim", "start", "settle", "leave"),
    "is run again by the same worker": (
        "claim",
        "start",
        "leave",
        "requeue",
        "claim",
        "start",
        "leave",
        "settle",
    ),
    "is deleted": ("claim", "start", "delete", "leave"),
    "is deleted, and its handler never ends": ("claim", "start", "delete"),
    "is taken by another worker": ("claim", "start", "requeue", "claim elsewhere", "leave"),
}
BEAT = ("read", "ask", "look", "hear")
"""Which attempts run is read, sent, those without a row are looked for in the archive, and the rest
stopped.
"""


class World:
    """One job, its worker's attempts, and one heartbeat of that worker."""

    def __init__(self, database: Connection, first: int) -> None:
        self.database = database
        self.first = first
        self.running: set[tuple[int, int]] = set()
        self.read: set[tuple[int, int]] = set()
        self.gone: list[tuple[int, int]] = []
        self.stopped: set[tuple[int, int]] = set()
        self.number = first

    async def step(self, what: str) -> None:
        await (self.beat(what) if what in BEAT else self.live(what))

    async def beat(self, what: str) -> None:
        match what:
            case "read":
                self.read = set(self.running)
            case "ask":
                self.gone = await gone(self.database, [*self.read], self.first)
            case "look":
                completed = await claim_calls.completed_claims(self.database, self.gone)
                self.gone = [*{*self.gone} - completed]
            case "hear":
                self.stopped = {*self.gone} & self.running

    async def live(self, what: str) -> None:
        match what:
            case "claim":
                await self.claim("worker-1")
            case "claim elsewhere":
                await self.claim("worker-2")
            case "start":
                self.started = (self.claimed.id, self.claimed.number)
                self.running.add(self.started)
            case "leave":
                self.running.discard(self.started)
            case "settle":
                await claim_calls.finish_jobs(
                    self.database, [Finished(self.claimed, State.COMPLETED)]
                )
            case "requeue":
                await self.database.execute(
                    "UPDATE hybrid_runner.jobs SET state = 'queued', claim = NULL, worker_id ="
                    " NULL, started_at = NULL"
                )
            case "delete":
                await self.database.execute("DELETE FROM hybrid_runner.jobs")

    async def claim(self, worker_id: str) -> None:
        self.number += 1
        taken = await claim_calls.claim_jobs(
            self.database, "default", KINDS, 1, worker_id, self.number
        )
        [self.claimed] = taken.claims


def orders(life: Sequence[str]) -> Iterator[list[str]]:
    """All ways in which a life and a heartbeat can meet."""
    total = len(life) + len(BEAT)
    for places in combinations(range(total), len(BEAT)):
        steps, beat = iter(life), iter(BEAT)
        yield [next(beat) if place in places else next(steps) for place in range(total)]


@pytest.mark.parametrize("name", LIVES)
async def test_whatever_meets_a_heartbeat_only_an_attempt_without_its_row_is_stopped(
    database: Connection, name: str
) -> None:
    """B4"""
    first = await living(database)
    loses_its_row = {"delete", "claim elsewhere"} & {*LIVES[name]}
    for order in orders(LIVES[name]):
        await database.execute("TRUNCATE hybrid_runner.jobs")
        await enqueue(database)
        world = World(database, first)
        for what in order:
            await world.step(what)
        lost = next(
            (what for what in ("delete", "requeue") if loses_its_row and what in order), None
        )
        expected = (
            lost is not None
            and order.index("start") < order.index("read")
            and order.index(lost) < order.index("ask")
            and ("leave" not in order or order.index("hear") < order.index("leave"))
        )
        assert bool(world.stopped) is expected, order


async def test_a_truncated_table_and_ids_that_are_run_anew_are_told_apart(
    database: Connection,
) -> None:
    """B4"""
    first = await living(database)
    for _ in range(3):
        await enqueue(database)
    claims = await claim(database)
    sent = [(one.id, one.number) for one in claims]
    assert not await gone(database, sent, first)
    assert await gone(database, [(claims[0].id, claims[0].number - 1)], first) == [
        (claims[0].id, claims[0].number - 1)
    ]
    await database.execute("TRUNCATE hybrid_runner.jobs")
    assert await gone(database, sent, first) == sent


async def gone(
    database: Connection, running: list[tuple[int, int]], first: int
) -> list[tuple[int, int]]:
    news = await told(database, "worker-1", first, running)
    return sorted((one.job_id, one.claim) for one in news if isinstance(one, RowGone))
