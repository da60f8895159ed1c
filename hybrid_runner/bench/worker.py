"""A worker as users run it, whose handlers record when they were called: `python -m
hybrid_runner.bench.worker SLOTS [WORKERS]`. Commands: `expect KIND N [SECONDS]`, `clear`, `looks`,
`spans`, `release` (let the handlers of `wait` return).
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from hybrid_runner.bench.stopwatch import Stopwatch, obey, run_fast, say
from hybrid_runner.handlers.job import Job
from hybrid_runner.model.outcomes import Snooze
from hybrid_runner.runner import Runner
from hybrid_runner.telemetry.logs.setup import configure_logs
from hybrid_runner.telemetry.tracing.export import exporting, spans_dropped, spans_sent
from hybrid_runner.worker.interpreter import collect_garbage_less_often
from hybrid_runner.worker.worker import Worker

QUEUE = "bench"


async def main() -> None:
    """Work until stdin is closed."""
    slots, count = (int(word) for word in (*sys.argv[1:], "0", "1")[:2])
    watches: dict[str, Stopwatch] = defaultdict(Stopwatch)
    released = asyncio.Event()
    app = make_app(watches, released)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app)
        await stack.enter_async_context(exporting("bench"))
        workers = [app.worker({QUEUE: slots or app.settings.work.slots}) for _ in range(count)]
        for worker in workers:
            await stack.enter_async_context(worker)
        for worker in workers:
            await worker.hearing()
        say({"ready": True})
        await obey(commands(watches, released, workers))
        released.set()


def make_app(watches: dict[str, Stopwatch], released: asyncio.Event) -> Runner:
    """A Runner whose handlers only record the time."""
    app = Runner(os.environ["HYBRID_RUNNER_DSN"])
    noop_watch, stamp_watch, wait_watch = watches["noop"], watches["stamp"], watches["wait"]
    again_watch, poll_watch = watches["again"], watches["poll"]
    order_watch = watches["order"]

    @app.job("noop", queue=QUEUE)
    async def noop(_: Any) -> None:
        noop_watch.note()

    @app.job("stamp", queue=QUEUE)
    async def stamp(sent: Any) -> None:
        stamp_watch.note(sent)

    @app.job("wait", queue=QUEUE)
    async def wait(_: Any) -> None:
        wait_watch.note()
        await released.wait()

    @app.job("order", queue=QUEUE)
    async def order(_: Any) -> None:
        order_watch.note()

    @app.job("again", queue=QUEUE)
    async def again(_: Any, job: Job) -> Snooze:
        lateness = time.time() - job.run_at.timestamp()
        again_watch.note(time.monotonic_ns() - round(lateness * 1e9))
        return Snooze(random.uniform(0.5, 1.5))  # not for secrets

    @app.job("poll", queue=QUEUE)
    async def poll(every: float, job: Job) -> Snooze:
        lateness = time.time() - job.run_at.timestamp()
        poll_watch.note(time.monotonic_ns() - round(lateness * 1e9))
        return Snooze(every * random.uniform(0.8, 1.2))  # not for secrets

    return app


def commands(
    watches: dict[str, Stopwatch], released: asyncio.Event, workers: list[Worker]
) -> dict[str, Any]:
    """What each command of the parent does."""

    async def expect(words: list[str]) -> dict[str, Any]:
        kind, count, *patience = words
        return await watches[kind].expect(int(count), float(patience[0]) if patience else None)

    async def clear(_: list[str]) -> None:
        for watch in watches.values():
            watch.clear()

    async def looks(_: list[str]) -> dict[str, Any]:
        return {"looks": sum(queue.looks for worker in workers for queue in worker.status().queues)}

    async def spans(_: list[str]) -> dict[str, Any]:
        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider):
            await asyncio.to_thread(provider.force_flush, 5000)
        return {"sent": spans_sent(), "dropped": spans_dropped()}

    async def release(_: list[str]) -> None:
        released.set()

    return {"expect": expect, "clear": clear, "looks": looks, "spans": spans, "release": release}


if __name__ == "__main__":
    collect_garbage_less_often()
    configure_logs("error", "console")
    run_fast(main)
