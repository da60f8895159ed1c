"""What looks behind a frontier read, while nothing can be vacuumed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.claim_calls import WHOLE_LANES, Lanes
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.connections.session_settings import FOR_CLAIMS
from hybrid_runner.storage.queries import query
from hybrid_runner.worker.queue.claims import Frontier
from tests.storage.test_plans import Plan, nodes
from tests.support.jobs import KINDS, NUMBERS, enqueue
from tests.support.server import Databases

Another = Callable[[], Awaitable[Connection]]
WALKED = 20_000
BATCH = 500
TYPES = (
    "text, text[], int8, text, int4[], interval[], timestamptz[], int8[], int8, bool[],"
    " int8[], int4"
)
FILL = """
INSERT INTO hybrid_runner.jobs (kind, run_at)
SELECT 'work', now() - interval '1 hour' + make_interval(secs => n * 7919 % 20000 / 1000.0)
FROM generate_series(1, 20000) AS n
"""
"""Not in the order of their run_at: what is read is counted in pages, and neighbours would share
theirs.
"""


async def prepare(connection: Connection) -> None:
    await connection.execute(f"PREPARE claim_jobs ({TYPES}) AS {query('claim_jobs')}")


async def explain(connection: Connection, lanes: Lanes) -> Plan:
    """The plan of a look, as it was executed; what it claimed is put back."""
    run_ats = "{" + ",".join(run_at.isoformat() for run_at in lanes[0]) + "}"
    ids = "{" + ",".join(map(str, lanes[1])) + "}"
    transaction = connection.transaction()
    await transaction.start()
    text = await connection.fetchval(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE claim_jobs ('default', ARRAY['work'],"
        f" {BATCH}, 'w', ARRAY[5], ARRAY[NULL::interval], '{run_ats}'::timestamptz[],"
        f" '{ids}'::int8[], {next(NUMBERS)}, ARRAY[true], '{{}}', 65536)"
    )
    await transaction.rollback()
    plan: Plan = json.loads(text)[0]["Plan"]
    return plan


def shape(plan: Plan) -> list[tuple[Any, ...]]:
    """What is done, without what it cost."""
    return [
        (
            n["Node Type"],
            n.get("Relation Name"),
            n.get("Index Name"),
            n.get("Index Cond"),
            n.get("Filter"),
        )
        for n in nodes(plan)
    ]


def buffers(plan: Plan) -> int:
    """Pages read, wherever they were."""
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def walk(plan: Plan) -> Plan:
    """The node that walks the lanes."""
    [node] = [node for node in nodes(plan) if node.get("Index Name") == "jobs_due"]
    return node


async def drain(connection: Connection, frontier: Frontier) -> int:
    """Claim and finish everything in batches; how many."""
    done = 0
    while True:
        lanes = frontier.lanes(sweep=False)
        taken = await claim_calls.claim_jobs(
            connection, "default", KINDS, BATCH, "w", next(NUMBERS), lanes
        )
        frontier.moved_by(taken, BATCH)
        if not taken.claims:
            return done
        done += len(
            await claim_calls.finish_jobs(
                connection, [Finished(c, State.COMPLETED) for c in taken.claims]
            )
        )


async def test_a_look_does_not_walk_over_what_is_gone_while_nothing_can_be_vacuumed(
    databases: Databases, template: str
) -> None:
    """A8: by a statement that was prepared on an empty table, too."""
    with databases.fresh(template) as dsn:
        claims, later, other, pin = [
            await connect(dsn, settings) for settings in (FOR_CLAIMS, FOR_CLAIMS, {}, {})
        ]
        await prepare(claims)
        empty = [
            await explain(claims, WHOLE_LANES) for _ in range(10)
        ]  # Postgres considers a generic plan after five
        pinning = pin.transaction(isolation="repeatable_read")
        await pinning.start()
        await pin.execute("SELECT FROM hybrid_runner.jobs")

        await other.execute(FILL)
        frontier = Frontier(timedelta(milliseconds=50))
        assert await drain(claims, frontier) == WALKED
        await enqueue(other)

        look = await explain(claims, frontier.lanes(sweep=False))
        sweep = await explain(claims, WHOLE_LANES)
        await prepare(later)
        fresh = await explain(later, frontier.lanes(sweep=False))
        await pinning.rollback()
        for connection in (claims, later, other, pin):
            await connection.close()

    assert (
        walk(look)["Actual Rows"] * walk(look)["Actual Loops"]
        == walk(sweep)["Actual Rows"] * walk(sweep)["Actual Loops"]
        == 1
    )
    assert buffers(look) < 300
    assert buffers(sweep) > max(WALKED / 2, 20 * buffers(look))
    assert shape(look) == shape(sweep) == shape(fresh)
    assert all(shape(plan) == shape(look) for plan in empty)
    assert walk(look)["Node Type"] == "Index Scan"
    assert "> ROW(lane.run_at, lane.id)" in walk(look)["Index Cond"]
