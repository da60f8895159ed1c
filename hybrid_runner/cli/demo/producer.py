"""Inserts the demo's jobs by plain SQL, as any other program could; reports them as JSON lines.

The database is HYBRID_RUNNER_DSN. `python -m hybrid_runner.cli.demo.producer SECONDS BURST`
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time

from hybrid_runner.storage.connections.connection import Connection, connect

INSERT = "INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ('demo', '{}', '{}')"
ROWS = (
    ("greeting", '{"name": "world"}'),
    ("thumbnail", '{"url": "cat.jpg"}'),
    ("checksum", '{"text": "hybrid"}'),
    ("greeting", '{"name": "you"}'),
    ("thumbnail", '{"url": "dog.jpg", "width": 64}'),
    ("greeting", '{"name": "Postgres"}'),
)
"""Jobs that arrive all the time, one row each: kind and payload."""

PAUSE = 0.11
KEYED = (
    """SELECT hybrid_runner.enqueue('report', '{"year": 2026}', """
    "queue => 'demo', key => 'report:2026')"
)
LATER = (
    "INSERT INTO hybrid_runner.jobs (queue, kind, payload, run_at) "
    """VALUES ('demo', 'reminder', '{"text": "tea"}', clock_timestamp() + interval '2 seconds')"""
)
BURST = (
    "INSERT INTO hybrid_runner.jobs (queue, kind, priority, payload) "
    """SELECT 'demo', 'tick', 9, jsonb_build_object('n', n) FROM generate_series(1, {}) AS n"""
)
STORY = (
    (0.10, INSERT.format("payment", '{"cents": 1250}')),
    (0.18, INSERT.format("upload", '{"file": "talk.mp4"}')),
    (0.26, KEYED),
    (0.30, KEYED),
    (0.40, LATER),
)
"""Statements that are run once, and when: a share of the whole time."""
BURST_AT = 0.55


async def produce(seconds: float, burst: int) -> None:
    """Insert at a pace that eyes can follow, a burst in the middle of it."""
    connection = await connect(os.environ["HYBRID_RUNNER_DSN"])
    start = time.monotonic()
    once = [(share * seconds, statement, 1) for share, statement in STORY]
    once.append((BURST_AT * seconds, BURST.format(burst), burst))
    for kind, payload in itertools.cycle(ROWS):
        if (now := time.monotonic() - start) >= seconds:
            break
        while once and once[0][0] <= now:
            await do(connection, once[0][1], once.pop(0)[2])
        await do(connection, INSERT.format(kind, payload), 1)
        await asyncio.sleep(PAUSE)
    await connection.close()


async def do(connection: Connection, statement: str, jobs: int) -> None:
    """Run a statement as any client would, and report it."""
    answer = await connection.fetch(statement)
    print(
        json.dumps({"sql": statement, "jobs": jobs, "id": answer[0][0] if answer else None}),
        flush=True,
    )


if __name__ == "__main__":
    try:
        asyncio.run(produce(float(sys.argv[1]), int(sys.argv[2])))
    except BrokenPipeError:  # whoever watched has gone
        os._exit(0)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
