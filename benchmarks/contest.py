"""Compares hybrid_runner with other runners on one server, in one run, in turns: `python -m
benchmarks.contest [--quick] [--output FOLDER]`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.contestants import Contestant, contestants
from benchmarks.pictures import draw_all
from benchmarks.rows import HEADERS, rows_of
from hybrid_runner.bench import processor
from hybrid_runner.bench.child import BenchError, Child, module, started
from hybrid_runner.bench.database import BenchDatabase, own_database
from hybrid_runner.bench.pgbench import inserts_per_second
from hybrid_runner.bench.plots import ADVICE, can_draw
from hybrid_runner.bench.producer import INSERT_VARIABLE
from hybrid_runner.bench.results import median, p50_p99
from hybrid_runner.bench.running import about_database
from hybrid_runner.bench.sizes import FULL, QUICK, Sizes
from hybrid_runner.telemetry.logs.setup import configure_logs

Measure = Callable[[BenchDatabase, Contestant, Sizes], Awaitable[dict[str, Any]]]
PATIENCE = 30.0
"""Seconds that the last jobs may take once all are enqueued."""
_WARM_UP = 10
_PAUSE = 0.02


async def drain(database: BenchDatabase, contestant: Contestant, sizes: Sizes) -> dict[str, Any]:
    """Jobs per second from the first handler to the last of a full queue."""
    jobs = max(100, round(sizes.drain_jobs * contestant.share))
    await contestant.clear(database)
    await contestant.put_in(database, jobs)
    async with contestant.started(database) as worker:
        answer = await worker.ask(f"expect noop {jobs} {10 * PATIENCE:.0f}", 11 * PATIENCE)
        if answer["handled"] < jobs:
            raise BenchError(f"handled {answer['handled']} of {jobs} in time")
        await _must_be_empty(database, contestant)
    return {"jobs": jobs, "rate": (jobs - 1) / ((answer["marks"][-1] - answer["marks"][0]) / 1e9)}


async def pickup(database: BenchDatabase, contestant: Contestant, sizes: Sizes) -> dict[str, Any]:
    """From INSERT to handler when nothing else happens."""
    await contestant.clear(database)
    async with contestant.started(database) as worker:
        await _warm_up(database, contestant, worker)
        count = max(10, sizes.pickups // sizes.rounds)
        for _ in range(count):
            await asyncio.sleep(_PAUSE)
            await database.connection.execute(contestant.insert, str(time.monotonic_ns()))
        latencies = (await worker.ask(f"expect stamp {count} {PATIENCE}"))["latencies"]
    if len(latencies) < count:
        raise BenchError(f"handled {len(latencies)} of {count} in time")
    return {"latencies": latencies}


async def paced(
    database: BenchDatabase, contestant: Contestant, sizes: Sizes, rate: int
) -> dict[str, Any]:
    """From INSERT to handler at a rate; what could not be handled soon after is left out, and
    counted.
    """
    await contestant.clear(database)
    command, insert = (
        module("producer", str(sizes.paced_connections)),
        {INSERT_VARIABLE: contestant.insert},
    )
    async with (
        contestant.started(database) as worker,
        started("the producer", command, database.dsn, insert) as producer,
    ):
        await _warm_up(database, contestant, worker)
        before, begun = (
            (processor.seconds_of(worker.pid), database.server_seconds()),
            time.monotonic(),
        )
        sent = await producer.ask(f"pace {rate} {sizes.paced_seconds}")
        answer = await worker.ask(f"expect stamp {sent['sent']} {PATIENCE}")
        after, took = (
            (processor.seconds_of(worker.pid), database.server_seconds()),
            time.monotonic() - begun,
        )
    p50, p99 = p50_p99(answer["latencies"]) if answer["latencies"] else (None, None)
    shares = [
        None if b is None or a is None else (a - b) / took
        for b, a in zip(before, after, strict=True)
    ]
    return {
        "rate": rate,
        "reached": sent["sent"] / sent["seconds"],
        "handled": answer["handled"] / max(1, sent["sent"]),
        "p50_ms": p50,
        "p99_ms": p99,
        "worker_cpu": shares[0],
        "server_cpu": shares[1],
    }


async def producers(
    database: BenchDatabase, contestant: Contestant, sizes: Sizes, clients: int
) -> dict[str, Any]:
    """Single-row INSERTs a second, while its worker runs what arrives."""
    await contestant.clear(database)
    insert = contestant.insert.replace("$1::text", "'0'").replace("$1", "'0'")
    async with contestant.started(database):
        rate = await inserts_per_second(database.dsn, insert, clients, sizes.producer_seconds)
    return {"clients": clients, "rate": rate}


async def hold(
    database: BenchDatabase, sizes: Sizes, wanted: Sequence[str], only: str
) -> dict[str, Any]:
    """Measure every scenario for every runner, in turns."""
    everyone = [contestant for contestant in await contestants(database) if only in contestant.name]
    results: dict[str, Any] = {name: {} for name in wanted}
    if "drain" in wanted:
        results["drain"] = await _in_turns(database, everyone, sizes, drain)
    if "pickup" in wanted:
        results["pickup"] = await _in_turns(database, everyone, sizes, pickup)
    for name, measure, cases in (
        ("paced", paced, sizes.paced_rates),
        ("producers", producers, sizes.producer_clients),
    ):
        if name not in wanted:
            continue
        for flush, case in itertools.product((False, True), cases):
            unit = "/s" if name == "paced" else " clients"
            words = f"{case:,}{unit}{', 1 ms flush' if flush else ''}"
            async with database.flush(imitated=flush):
                results[name][words] = await _in_turns(
                    database, everyone, replace(sizes, rounds=1), _with(measure, case), words
                )
    return results


def _with(measure: Any, case: int) -> Measure:
    async def measured(
        database: BenchDatabase, contestant: Contestant, sizes: Sizes
    ) -> dict[str, Any]:
        answer: dict[str, Any] = await measure(database, contestant, sizes, case)
        return answer

    measured.__name__ = measure.__name__
    return measured


async def _in_turns(
    database: BenchDatabase,
    everyone: list[Contestant],
    sizes: Sizes,
    measure: Measure,
    words: str = "",
) -> dict[str, Any]:
    rounds: dict[str, list[dict[str, Any]]] = {contestant.name: [] for contestant in everyone}
    for number, contestant in itertools.product(range(sizes.rounds), everyone):
        begun = time.monotonic()
        try:
            rounds[contestant.name].append(await measure(database, contestant, sizes))
        except BenchError as error:
            rounds[contestant.name].append({"error": str(error)})
        said = rounds[contestant.name][-1].get("error", "done")
        print(
            f"{measure.__name__} {words} round {number + 1}, {contestant.name}: {said},"
            f" {time.monotonic() - begun:.1f} s",
            file=sys.stderr,
            flush=True,
        )
    return {name: _summary(answers) for name, answers in rounds.items()}


def _summary(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of several rounds as one."""
    if errors := [answer["error"] for answer in answers if "error" in answer]:
        return {"error": errors[0]}
    summary = dict(answers[0])
    if "rate" in summary and len(answers) > 1:
        summary |= {
            "rate": median([answer["rate"] for answer in answers]),
            "rounds": [answer["rate"] for answer in answers],
        }
    if "latencies" in summary:
        latencies = [latency for answer in answers for latency in answer["latencies"]]
        p50, p99 = p50_p99(latencies)
        summary = {"count": len(latencies), "p50_ms": p50, "p99_ms": p99}
    return summary


async def _warm_up(database: BenchDatabase, contestant: Contestant, worker: Child) -> None:
    """Wait until the worker listens and has run jobs: the first may wait for its poll, or for its
    start.
    """
    for _ in range(_WARM_UP):
        await database.connection.execute(contestant.insert, str(time.monotonic_ns()))
        await asyncio.sleep(_PAUSE)
    if (await worker.ask(f"expect stamp {_WARM_UP} {PATIENCE}"))["handled"] < _WARM_UP:
        raise BenchError("it did not run the first jobs")
    await _must_be_empty(database, contestant)
    worker.tell("clear")


async def _must_be_empty(database: BenchDatabase, contestant: Contestant) -> None:
    for _ in range(200):
        if not (left := await database.connection.fetchval(contestant.left)):
            return
        await asyncio.sleep(0.05)
    raise BenchError(f"{left} jobs are left behind")


def main() -> int:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help="drain, pickup, paced, producers (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="to see that it runs, not for figures")
    parser.add_argument(
        "--only", default="", metavar="NAME", help="contestants whose name has this in it"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write peers.json there, and pictures"
    )
    arguments = parser.parse_args()
    configure_logs("error", "console")
    wanted = [
        name
        for name in ("drain", "pickup", "paced", "producers")
        if name in (arguments.scenarios or name)
    ]
    results = asyncio.run(_run(QUICK if arguments.quick else FULL, wanted, arguments.only))
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "peers.json").write_text(
            json.dumps(results, indent=2) + "\n", encoding="utf-8"
        )
        print(ADVICE if not can_draw() else "", end="", file=sys.stderr)
        if can_draw():
            draw_all(results, arguments.output)
    for row in (HEADERS, *rows_of(results)):
        print(
            "  ".join(
                cell.ljust(width) for cell, width in zip(row, (38, 30, 26, 26, 8), strict=True)
            ).rstrip()
        )
    return 0


async def _run(sizes: Sizes, wanted: Sequence[str], only: str) -> dict[str, Any]:
    async with own_database() as database:
        about = await about_database(database, own=True)
        return {"about": about, "scenarios": await hold(database, sizes, wanted, only)}


if __name__ == "__main__":
    sys.exit(main())
