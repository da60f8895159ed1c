"""From INSERT to handler while somebody sends the worker a thousand forged messages a second, and
what the worker spends on them; beside the same worker left alone.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from hybrid_runner.bench import processor
from hybrid_runner.bench.child import Child
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, p50_p99
from hybrid_runner.bench.scenarios.pickup import PAUSE, pickups
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.bench.worker import QUEUE
from hybrid_runner.model.messages import channel_of
from hybrid_runner.storage.connections.connection import Connection, connect

WORDS = {
    "rings": "%",
    "later": "later %",
    "help": "help %",
    "here": "here somebody-%",
    "gone": "gone somebody-%",
    "pass": "pass now % 0",
    "cancel": "cancel %",
}
"""A message of each kind; % is another number each time."""
_A_SECOND = 1000
_AT_ONCE = 2
_FLOOD_AT_ONCE = 5000
_FLOOD_PAUSE = 1.0
_SETTLING = 1.0
"""Seconds under forged messages before anything is counted: what may be done at once is used up."""


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """One worker: left alone first, then with each kind of message, then with a flood."""
    await database.clear()
    async with database.worker() as worker:
        await pickups(database, worker, 20)
        alone = await pickups(database, worker, sizes.pickups)
        under: dict[str, Siege] = {}
        for number, (name, word) in enumerate(WORDS.items()):
            tell((number + 1) / (len(WORDS) + 2), f"{_A_SECOND} forged {name} a second")
            forger = Forger(word, _AT_ONCE, _AT_ONCE / _A_SECOND)
            under[name] = await besiege(database, worker, forger, sizes.pickups, PAUSE)
        tell((len(WORDS) + 1) / (len(WORDS) + 2), "a flood")
        forger = Forger("here somebody-%", _FLOOD_AT_ONCE, 0.0)
        under["flood"] = await besiege(database, worker, forger, sizes.forged_floods, _FLOOD_PAUSE)
    quiet, _ = p50_p99(alone)
    figures: list[Figure] = []
    for name, siege in under.items():
        p50, _ = p50_p99(siege.latencies)
        figures += [
            Figure(f"{name}, p50", "ms", p50, "left alone", quiet),
            Figure(f"{name}, worker's processor time", "% of a core", siege.share * 100),
        ]
    details = {"alone": alone} | {name: siege._asdict() for name, siege in under.items()}
    return Result(tuple(figures), {"pickups": sizes.pickups, "microseconds": details})


class Siege(NamedTuple):
    """What was measured while somebody sent forged messages."""

    latencies: list[int]
    share: float
    """Of a core, that the worker used."""
    rate: float
    """Forged messages a second, as many as the sender got out."""


class Forger:
    """Sends so many messages each time."""

    def __init__(self, word: str, at_once: int, pause: float) -> None:
        self._word = word
        self._at_once = at_once
        self._pause = pause
        self.sent = 0

    async def run(self, connection: Connection) -> None:
        """Send until cancelled."""
        channel, began = channel_of(QUEUE).name, time.monotonic()
        while True:
            await connection.execute(text("forge"), channel, self._word, self.sent, self._at_once)
            self.sent += self._at_once
            due = began + self.sent / self._at_once * self._pause
            await asyncio.sleep(max(0.0, due - time.monotonic()))


async def besiege(
    database: BenchDatabase, worker: Child, forger: Forger, count: int, pause: float
) -> Siege:
    """So many pickups while the forger sends."""
    connection = await connect(database.dsn)
    sending = asyncio.create_task(forger.run(connection))
    try:
        await asyncio.sleep(_SETTLING)
        used, sent, began = _seconds_of(worker), forger.sent, time.monotonic()
        latencies = await pickups(database, worker, count, pause=pause)
        seconds = time.monotonic() - began
        share = (_seconds_of(worker) - used) / seconds
        return Siege(latencies, share, (forger.sent - sent) / seconds)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        connection.terminate()


def _seconds_of(worker: Child) -> float:
    return processor.seconds_of_threads(worker.pid) or 0.0
