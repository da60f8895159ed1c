"""Which services are maintained now, by windows and labels."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection

ADD = "INSERT INTO hybrid_monitors.services (name, url, labels) VALUES ($1, 'http://a/', $2)"
WINDOW = (
    "INSERT INTO hybrid_monitors.windows (label, begins, ends)"
    " VALUES ($1, now() - interval '1 h', now() + interval '1 h')"
)
MAINTAINED = "SELECT service_id FROM hybrid_monitors.maintained ORDER BY 1"
SHOWN = "SELECT id FROM hybrid_monitors.overview WHERE state = 'maintenance' ORDER BY 1"
EACH_WITH_EACH = (
    "SELECT DISTINCT s.id FROM hybrid_monitors.services AS s"
    " JOIN hybrid_monitors.windows AS w ON s.labels @> w.label ORDER BY 1"
)
EXPLAIN = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT state FROM hybrid_monitors.overview"


@pytest.mark.parametrize("seed", range(5))
async def test_a_window_is_for_all_services_that_have_its_labels(
    undone: Connection, seed: int
) -> None:
    """As it is when each service is compared with each window."""
    chance = random.Random(seed)

    def labels(most: int) -> str:
        values: list[Any] = ["shop", "1", 1, 1.0, 2, True, False]
        names = chance.sample("abcd", chance.randint(0 if chance.random() < 0.05 else 1, most))
        return json.dumps({name: chance.choice(values) for name in names})

    for number in range(150):
        await undone.execute(ADD, f"s{number}", labels(4))
    for _ in range(12):
        await undone.execute(WINDOW, labels(3))
    expected = await undone.fetch(EACH_WITH_EACH)
    assert expected
    assert await undone.fetch(MAINTAINED) == expected
    assert await undone.fetch(SHOWN) == expected


async def test_not_each_service_is_compared_with_each_window(undone: Connection) -> None:
    """Nobody can make the overview slow for all by many windows."""
    await undone.execute(
        "INSERT INTO hybrid_monitors.services (name, url, labels) SELECT 's' || n, 'http://a/',"
        " jsonb_build_object('team', n % 5, 'n', n) FROM generate_series(1, 500) AS n"
    )
    await undone.execute(
        "INSERT INTO hybrid_monitors.windows (label, begins, ends) SELECT"
        " jsonb_build_object('team', n % 5, 'n', -n), now(), now() + interval '1 h'"
        " FROM generate_series(1, 500) AS n"
    )
    [row] = await undone.fetch(EXPLAIN)
    todo, most = [json.loads(row[0])[0]["Plan"]], 0.0
    while todo:
        node = todo.pop()
        todo += node.get("Plans", [])
        removed = sum(count for name, count in node.items() if name.startswith("Rows Removed"))
        most = max(most, (node["Actual Rows"] + removed) * node["Actual Loops"])
    assert 500 <= most <= 5_000
