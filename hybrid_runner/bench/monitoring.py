"""Polls services in one of three ways: `python -m hybrid_runner.bench.monitoring WAY PORT HOSTS
SERVICES EVERY`. Ways: `rounds` (a job per host, as hybrid_runner.monitors does it), `jobs` (a job
per service), `bare` (the requests alone, and nothing is stored).

Command: `jobs`, how many jobs have ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from hybrid_runner.bench.services import host
from hybrid_runner.bench.stopwatch import obey, run_fast, say
from hybrid_runner.bench.texts import text
from hybrid_runner.bench.worker import QUEUE
from hybrid_runner.model.outcomes import Repeat
from hybrid_runner.monitors import Monitors
from hybrid_runner.runner import Runner
from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.telemetry.logs.setup import configure_logs
from hybrid_runner.worker.interpreter import collect_garbage_less_often
from hybrid_runner.worker.worker import Worker

PER_HOST = 5
KIND = "service"
_SLOTS = 200
_CONNECTIONS = 8
_TICK = 0.25


class Plan(NamedTuple):
    port: int
    hosts: int
    services: int
    every: float

    def urls(self, number: int) -> list[str]:
        """Those of one host."""
        own = range(number, self.services, self.hosts)
        return [f"http://{host(number)}:{self.port}/{service}/dependencies" for service in own]


Work = AbstractAsyncContextManager[Callable[[], int]]
"""Polls until it is left; it tells how many jobs have ended."""


@asynccontextmanager
async def by_rounds(_: Plan) -> AsyncIterator[Callable[[], int]]:
    app = Runner(os.environ["HYBRID_RUNNER_DSN"])
    Monitors(app)
    async with app, app.worker({"monitors": _SLOTS}) as worker:
        yield lambda: _ended(worker)


@asynccontextmanager
async def by_jobs(plan: Plan) -> AsyncIterator[Callable[[], int]]:
    """A request and a write of its own for each service."""
    dsn = os.environ["HYBRID_RUNNER_DSN"]
    app, free = Runner(dsn), asyncio.Queue[Connection]()
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit_per_host=PER_HOST))

    @app.job(KIND, queue=QUEUE)
    async def poll(service: dict[str, Any]) -> Repeat:
        began = time.monotonic()
        ok = await _get(session, service["url"])
        latency = round((time.monotonic() - began) * 1000)
        connection = await free.get()
        try:
            await connection.execute(text("write_standing"), service["id"], ok, latency, plan.every)
        finally:
            free.put_nowait(connection)
        return Repeat(plan.every)

    connections = [await connect(dsn) for _ in range(_CONNECTIONS)]
    for connection in connections:
        free.put_nowait(connection)
    async with session, app, app.worker({QUEUE: _SLOTS}) as worker:
        yield lambda: _ended(worker)
    for connection in connections:
        await connection.close()


@asynccontextmanager
async def bare(plan: Plan) -> AsyncIterator[Callable[[], int]]:
    """Each host's services one after the other, evenly spread over the interval, five at a time."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit_per_host=PER_HOST))
    async with session, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_ask_for_ever(session, plan.urls(number), plan.every))
            for number in range(plan.hosts)
        ]
        yield lambda: 0
        for task in tasks:
            task.cancel()


async def _ask_for_ever(session: aiohttp.ClientSession, urls: list[str], every: float) -> None:
    begun, asked = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - begun) / every * len(urls))
        while asked < due:
            some = range(asked, min(due, asked + PER_HOST))
            await asyncio.gather(*(_get(session, urls[one % len(urls)]) for one in some))
            asked = some.stop
        await asyncio.sleep(_TICK)


async def _get(session: aiohttp.ClientSession, url: str) -> bool:
    async with session.get(url) as answer:
        await answer.read()
        return answer.status == 200


def _ended(worker: Worker) -> int:
    return worker.status().settled.get("completed", 0)


WAYS: dict[str, Callable[[Plan], Work]] = {"rounds": by_rounds, "jobs": by_jobs, "bare": bare}


async def main() -> None:
    """Poll until stdin is closed."""
    way, port, hosts, services, every = sys.argv[1:]
    plan = Plan(int(port), int(hosts), int(services), float(every))
    async with WAYS[way](plan) as ended:

        async def jobs(_: list[str]) -> dict[str, Any]:
            return {"jobs": ended()}

        say({"ready": True})
        await obey({"jobs": jobs})


if __name__ == "__main__":
    collect_garbage_less_often()
    configure_logs("error", "console")
    run_fast(main)
