"""What the statements of an application cost on a table that is attached; beside a table like it
that is not. Meanwhile no worker runs.
"""

from __future__ import annotations

import itertools
import time

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.orders import ATTACHED, PLAIN, attached, empty, tables
from hybrid_runner.bench.pgbench import inserts_per_second
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes

SINGLE = {
    "INSERT of one row": "INSERT INTO {table} (note) VALUES (0)",
    "UPDATE of another column of one row": (
        "\\set id random(1, {rows})\nUPDATE {table} SET note = note + 1 WHERE id = :id"
    ),
}
"""By one client, as fast as it can."""
BULK = {
    "INSERT of many rows": ("INSERT INTO {table} (note) SELECT 0 FROM generate_series(1, {rows})"),
    "UPDATE of another column of them": "UPDATE {table} SET note = note + 1",
}
"""In one statement."""
_LONG = 600.0


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Each statement on both tables in turn."""
    rates: dict[str, dict[str, list[float]]] = {
        case: {PLAIN: [], ATTACHED: []} for case in (*SINGLE, *BULK)
    }
    async with tables(database), attached(database):
        turns = list(itertools.product(range(sizes.rounds), (PLAIN, ATTACHED)))
        for number, (turn, table) in enumerate(turns):
            tell(number / len(turns), f"round {turn + 1}: {table}")
            for case, rate in (await _rates_of(database, sizes, table)).items():
                rates[case][table].append(rate)
    figures = [
        Figure(
            case,
            "µs/row",
            1e6 / median(found[ATTACHED]),
            "not attached",
            1e6 / median(found[PLAIN]),
        )
        for case, found in rates.items()
    ]
    return Result(tuple(figures), {"rows": sizes.attached_rows, "rounds": rates})


async def _rates_of(database: BenchDatabase, sizes: Sizes, table: str) -> dict[str, float]:
    """Rows per second, by statement."""
    await empty(database)
    rates: dict[str, float] = {}
    for case, statement in BULK.items():
        asked = statement.format(table=table, rows=sizes.attached_rows)
        begun = time.perf_counter()
        await database.connection.execute(asked, timeout=_LONG)
        rates[case] = sizes.attached_rows / (time.perf_counter() - begun)
        await database.connection.execute(f"VACUUM ANALYZE {table}", timeout=_LONG)
        await database.vacuum()
    for case, statement in reversed(SINGLE.items()):
        asked = statement.format(table=table, rows=sizes.attached_rows)
        rates[case] = await inserts_per_second(database.dsn, asked, 1, sizes.producer_seconds)
    return rates
