"""From INSERT to handler while random sessions of the worker are ended by the server, beside the
same without.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell
from hybrid_runner.bench.scenarios.pickup import pickups
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.bench.texts import text
from hybrid_runner.display import percentile

_EVERY = 2.0
"""Seconds between two sessions that are ended."""
_AFTER = timedelta(seconds=1)
"""The pickups of so long after a session's end are said to be its work."""
_APART = 3
"""So many others are ended before the same one is again: what is measured is no lottery."""
_CONNECTIONS = 4
_LATEST = 30
"""Seconds after the last INSERT within which all handlers must have been called."""
_PARTS = (0.5, 0.95, 0.99)


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """The same rate twice, from a process of its own: left alone, then with sessions ended."""
    rounds = {}
    for share, (words, kills) in enumerate((("left alone", False), ("sessions ended", True))):
        tell(share / 2, words)
        rounds[words] = await _round(database, sizes, kills=kills)
    alone, killed = rounds.values()
    figures = [
        Figure(f"p{100 * part:.0f}", "ms", ours, "left alone", beside)
        for part, ours, beside in zip(_PARTS, killed["ms"], alone["ms"], strict=True)
    ]
    figures += [
        Figure(
            "p95, by the archive",
            "ms",
            killed["archived"]["p95"],
            "left alone",
            alone["archived"]["p95"],
        ),
        Figure("reached", "jobs/s", killed["reached"], "asked for", sizes.killed_rate),
    ]
    return Result(tuple(figures), {"seconds": sizes.killed_seconds, "rounds": rounds})


async def _round(database: BenchDatabase, sizes: Sizes, *, kills: bool) -> dict[str, Any]:
    """What came out, with milliseconds at `_PARTS`."""
    await database.clear()
    ended: list[tuple[str, datetime]] = []
    async with database.worker() as worker, database.producer(_CONNECTIONS) as producer:
        await pickups(database, worker, 1)
        worker.tell("clear")
        begun = await database.connection.fetchval("SELECT clock_timestamp()")
        ending = asyncio.create_task(_end_sessions(database, ended)) if kills else None
        try:
            sent = await producer.ask(f"pace {sizes.killed_rate} {sizes.killed_seconds}")
        finally:
            if ending is not None:
                ending.cancel()
                await asyncio.wait([ending])
        handled = await worker.ask(f"expect stamp {sent['sent']} {_LATEST}")
        await database.must_be_empty(worker.name)
    archived = await _archived(database, begun, begun + timedelta(days=1))
    return {
        "reached": sent["sent"] / sent["seconds"],
        "sent": sent["sent"],
        "handled": handled["handled"],
        "ms": [percentile(handled["latencies"], part) / 1000 for part in _PARTS],
        "longest_ms": max(handled["latencies"]) / 1000,
        "archived": archived,
        "ended": [
            {"session": name, "longest_ms": (await _archived(database, at, at + _AFTER))["longest"]}
            for name, at in ended
        ],
    }


async def _end_sessions(database: BenchDatabase, ended: list[tuple[str, datetime]]) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        row = await database.connection.fetchrow(
            text("kill_one"), [name for name, _ in ended[-_APART:]]
        )
        if row is not None:
            ended.append((row["application_name"], row["ended_at"]))


async def _archived(database: BenchDatabase, since: datetime, until: datetime) -> dict[str, Any]:
    row = await database.connection.fetchrow(text("pickups"), since, until)
    return {} if row is None else {name: float(value or 0) for name, value in row.items()}
