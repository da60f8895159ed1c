"""First points to compare with: the drain of 50,000 no-op jobs by one process, and pickup from INSERT to handler when idle.

    python benchmarks/first_points.py [--dsn …] [--jobs 50000] [--pickups 300]

Beside each stands its floor from the same run: the same rows claimed and archived by a bare loop over the same statements,
and a NOTIFY answered by one claim on two bare connections. Absolute figures say little on a small machine; the ratios do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from hybrid_runner import Runner
from hybrid_runner.embedded import use_embedded
from hybrid_runner.models import State
from hybrid_runner.outcomes import Finished
from hybrid_runner.storage import statements
from hybrid_runner.storage.connections import connect
from hybrid_runner.telemetry.logs import configure_logs

BATCH = 200
PAUSE = 0.02
INSERT = "INSERT INTO hybrid_runner.jobs (queue, kind) VALUES ($1, 'stamp')"


def quantiles(seconds: list[float]) -> dict[str, float]:
    """p50 and p99 in milliseconds."""
    ordered = sorted(seconds)
    return {f"p{p}": round(ordered[min(len(ordered) - 1, len(ordered) * p // 100)] * 1000, 2) for p in (50, 99)}


async def fill(dsn: str, queue: str, jobs: int) -> None:
    """Queue no-op jobs and let the planner know of them."""
    connection = await connect(dsn)
    await connection.execute(
        "INSERT INTO hybrid_runner.jobs (queue, kind) SELECT $1, 'noop' FROM generate_series(1, $2::int)", queue, jobs
    )
    await connection.execute("VACUUM ANALYZE hybrid_runner.jobs")
    await connection.close()


async def bare_drain(dsn: str, jobs: int) -> float:
    """Jobs per second of a loop that claims and archives, one statement after the other, a task a job."""
    await fill(dsn, "bare", jobs)
    connection = await connect(dsn)
    kinds = statements.Kinds([("noop", 5, None)])

    async def nothing() -> None: ...

    begun = time.perf_counter()
    while claims := await statements.claim_jobs(connection, "bare", kinds, BATCH, "bare"):
        await asyncio.gather(*(asyncio.create_task(nothing()) for _ in claims))
        await statements.finish_jobs(connection, [Finished(claim, State.COMPLETED, "null") for claim in claims])
    rate = jobs / (time.perf_counter() - begun)
    await connection.close()
    return rate


async def drain(dsn: str, jobs: int, **settings: Any) -> float:
    """Jobs per second of one worker process."""
    await fill(dsn, "drain", jobs)
    app = Runner(dsn, **settings)

    @app.job("noop")
    async def noop(payload: Any) -> None: ...

    async with app, app.worker({"drain": app.settings.slots}) as worker:
        begun = time.perf_counter()
        await worker.settled(jobs)
        return jobs / (time.perf_counter() - begun)


async def pickups(dsn: str, count: int) -> list[float]:
    """From before the INSERT to the first line of the handler, when nothing else happens."""
    app = Runner(dsn)
    arrived: asyncio.Queue[float] = asyncio.Queue()

    @app.job("stamp")
    async def stamp(_payload: Any) -> None:
        arrived.put_nowait(time.perf_counter())

    taken = []
    connection = await connect(dsn)
    async with app, app.worker({"idle": 10}) as worker:
        await worker.hearing()
        await worker.idle()
        for _ in range(count):
            await asyncio.sleep(PAUSE)
            begun = time.perf_counter()
            await connection.execute(INSERT, "idle")
            taken.append(await arrived.get() - begun)
    await connection.close()
    return taken


async def floor(dsn: str, count: int) -> list[float]:
    """The same INSERT, heard by a bare listener and answered by one claim."""
    listener, producer = await connect(dsn), await connect(dsn)
    kinds = statements.Kinds([("stamp", 5, None)])
    rung = asyncio.Event()
    await listener.add_listener("hybrid_runner.floor", lambda *_: rung.set())
    taken = []
    for _ in range(count):
        await asyncio.sleep(PAUSE)
        begun = time.perf_counter()
        await producer.execute(INSERT, "floor")
        await rung.wait()
        rung.clear()
        if not await statements.claim_jobs(listener, "floor", kinds, 10, "floor"):
            raise SystemExit("rung without a job: is another worker on the queue `floor`?")
        taken.append(time.perf_counter() - begun)
    await listener.close()
    await producer.close()
    return taken


async def measure(dsn: str, jobs: int, count: int) -> dict[str, Any]:
    """Everything, interleaved in one run."""
    runner = Runner(dsn)
    await runner.migrate()
    bare, ours = await bare_drain(dsn, jobs), await drain(dsn, jobs)
    lowest, idle = quantiles(await floor(dsn, count)), quantiles(await pickups(dsn, count))
    return {
        "drain": {"jobs": jobs, "bare loop/s": round(bare), "worker/s": round(ours), "ratio": round(ours / bare, 2)},
        "idle pickup, ms": {"floor": lowest, "worker": idle, "ratio p50": round(idle["p50"] / lowest["p50"], 2)},
    }


def main() -> None:
    """Measure on the given server, or on an embedded one made for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn")
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--pickups", type=int, default=300)
    arguments = parser.parse_args()
    configure_logs("warning", "console")
    with tempfile.TemporaryDirectory() as folder:
        embedded = None if arguments.dsn else use_embedded(Path(folder) / "postgres")
        dsn = arguments.dsn or (embedded.dsn if embedded else "")
        try:
            print(json.dumps(asyncio.run(measure(dsn, arguments.jobs, arguments.pickups)), indent=2))
        finally:
            if embedded:
                embedded.close()


if __name__ == "__main__":
    main()
