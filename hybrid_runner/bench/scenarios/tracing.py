"""How fast one worker empties a full queue while it records none, one in a hundred, or all of the
jobs as spans.
"""

from __future__ import annotations

import itertools
from typing import Any

from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.results import Figure, Result, Tell, median
from hybrid_runner.bench.sizes import Sizes

NOWHERE = "http://127.0.0.1:1"
"""An address at which no server listens."""
OFF, SOME, ALL, DEAD = (
    "no tracing",
    "1 % of the jobs",
    "every job",
    "every job, the collector is dead",
)


async def measure(database: BenchDatabase, sizes: Sizes, tell: Tell) -> Result:
    """Alternate, so that a busy moment of the machine meets all of them."""
    async with database.collector() as collector:
        endpoint = f"http://127.0.0.1:{collector.first['port']}"
        ways: dict[str, dict[str, str]] = {
            OFF: {},
            SOME: _variables(endpoint, "0.01"),
            ALL: _variables(endpoint, "1"),
            DEAD: _variables(NOWHERE, "1"),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        spans: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
        turns = list(itertools.product(range(sizes.rounds), ways.items()))
        for number, (turn, (name, variables)) in enumerate(turns):
            tell(number / len(turns), f"round {turn + 1}: {name}")
            rate, counted = await _drain(database, sizes.drain_jobs, variables)
            rates[name].append(rate)
            spans[name].append(counted)
    beside = {SOME: OFF, ALL: OFF, DEAD: ALL}
    figures = [
        Figure(name, "jobs/s", median(rates[name]), other, median(rates[other]))
        for name, other in beside.items()
    ]
    last = spans[ALL][-1]
    figures.append(
        Figure(
            "every job: spans that arrived",
            "spans",
            last["sent"],
            "all that were made",
            last["sent"] + last["dropped"],
        )
    )
    return Result(tuple(figures), {"jobs": sizes.drain_jobs, "rounds": rates, "spans": spans})


def _variables(endpoint: str, share: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": share,
    }


async def _drain(
    database: BenchDatabase, jobs: int, variables: dict[str, str]
) -> tuple[float, dict[str, Any]]:
    """Jobs per second from the first handler to the last, and what became of their spans."""
    await database.clear()
    await database.fill("noop", jobs)
    await database.vacuum()
    async with database.worker(variables=variables) as child:
        marks: list[int] = (await child.ask(f"expect noop {jobs}"))["marks"]
        await database.must_be_empty(child.name)
        spans = await child.ask("spans")
    return (jobs - 1) / ((marks[-1] - marks[0]) / 1e9), spans
