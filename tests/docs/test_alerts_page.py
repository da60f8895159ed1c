"""The queries of docs/alerts.md run, and find what their alert is about."""

from __future__ import annotations

import re
from typing import Any

from hybrid_runner.model.jobs import State
from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT
from tests.support.jobs import ended, running
from tests.support.monitored_pages import Monitored

TEXT = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
SECTIONS: dict[str, str] = dict(
    re.findall(r"^##? (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
)
QUERIES = {
    title: re.findall(r"^```sql\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)
    for title, body in SECTIONS.items()
}


async def asked(database: Connection, title: str, place: int = 0) -> list[tuple[Any, ...]]:
    """What a query below this heading answers."""
    return [tuple(row) for row in await database.fetch(QUERIES[title][place])]


async def test_all_of_them_run(monitored: Connection) -> None:
    assert sum(map(len, QUERIES.values())) == 12
    for queries in QUERIES.values():
        for query in queries:
            await monitored.execute(query)


async def test_services_that_are_down_or_not_polled_are_shown(monitored: Connection) -> None:
    here = Monitored(monitored)
    await here.up("fine")
    late = await here.down("orders", "timeout")
    [(name, _, failure, _, breaker, failures, down_for, _)] = await asked(
        monitored, "HybridRunnerServiceDown"
    )
    assert (name, failure, breaker, failures) == ("orders", "timeout", "open", 3)
    assert down_for.total_seconds() >= 42 * 60
    assert await asked(monitored, "HybridRunnerPollsLate") == []
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET due_at = now() - interval '1 hour'"
        " WHERE service_id = $1",
        late,
    )
    [(host, services, late_for, _, _)] = await asked(monitored, "HybridRunnerPollsLate")
    assert (host, services) == ("secret.example", 1)
    assert late_for.total_seconds() >= 3600


async def test_what_failed_is_grouped_and_can_be_run_again(database: Connection) -> None:
    first, last = await ended(database, State.FAILED), await ended(database, State.FAILED)
    await database.execute(
        "UPDATE hybrid_runner.archive SET kind = 'thumbnail', errors = '[{\"message\": \"no such image\"}]'"
    )
    assert await asked(database, "HybridRunnerJobsFail") == [
        ("thumbnail", "no such image", 2, last)
    ]
    again = await asked(database, "HybridRunnerJobsFail", 1)
    assert sorted(again) == [(first, "queued"), (last, "queued")]
    assert await asked(database, "HybridRunnerJobsRetried") == [
        ("thumbnail", "no such image", 2, 0, last)
    ]


async def test_what_waits_and_what_runs_the_longest_are_shown(database: Connection) -> None:
    taken = await running(database)
    await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('work')")
    await database.execute(
        "UPDATE hybrid_runner.jobs SET run_at = now() - interval '1 hour' WHERE state = 'queued'"
    )
    [(queue, kind, count, _, _)] = await asked(database, "HybridRunnerBacklogOld")
    assert (queue, kind, count) == ("default", "work", 1)
    [(job, *_)] = await asked(database, "HybridRunnerFleetFull")
    assert job == taken.id
