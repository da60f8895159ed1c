"""hybrid-runner demo."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

from hybrid_runner.cli.demo.app import app
from hybrid_runner.cli.demo.observations import Observations
from hybrid_runner.cli.demo.summary import as_document, print_advice, print_summary
from hybrid_runner.cli.demo.view import View
from hybrid_runner.cli.demo.watcher import JobLogLines, Watcher
from hybrid_runner.cli.output import counted, print_json
from hybrid_runner.cli.parsing import Parser, add_common
from hybrid_runner.cli.session import run, start_logs
from hybrid_runner.worker.worker import Worker

BURST = 5_000
SLOTS = 200
SECONDS = 7.0
"""How long jobs arrive."""
_LOOK = 0.1
_LAST_JOBS = 4.0


def configure(parser: Parser) -> None:
    parser.epilog = (
        f"It ends by itself after about {SECONDS:.0f} seconds; Ctrl-C ends it sooner. On a"
        " terminal a line below the events counts the jobs."
    )
    add_common(parser, logs="errors only")
    parser.run_by(lambda arguments: run(_demo(arguments)))


async def _demo(arguments: argparse.Namespace) -> int:
    say = (lambda _: None) if arguments.json else _say
    start_logs(arguments, app.settings)
    if arguments.log_level is None:  # what the worker logs is shown as events
        for handler in logging.getLogger().handlers:
            handler.setLevel(logging.ERROR)
    app.use(dsn=arguments.dsn)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    say("hybrid_runner demo")
    if app.settings.database.dsn is None:
        say("  postgres  no DSN is set: starting an embedded one")
        say("            (the first time takes a few seconds)")
    await app.open()
    try:
        if app.embedded:
            say("            it keeps its data in")
            say(f"            {app.embedded.directory}")
        await app.migrate()
        seen = Observations()
        async with app.worker({"demo": SLOTS}) as worker:
            say(
                f"  worker    this process: queue demo, {SLOTS} slots,"
                f" {counted(len(app.registry), 'kind')} of jobs"
            )
            await _watch(seen, worker, stop, None if arguments.json else View(seen, SECONDS))
        if arguments.json:
            print_json(as_document(seen))
        else:
            print_summary(seen)
            print_advice(app)
    finally:
        await app.close()
    return 0


async def _watch(
    seen: Observations, worker: Worker, stop: asyncio.Event, view: View | None
) -> None:
    """Let the producer work and show what happens."""
    connection = await app.connect()
    watcher = Watcher(seen, connection, worker, BURST)
    try:
        await worker.hearing()
        await watcher.begin()
        logging.getLogger("hybrid_runner.worker").addHandler(lines := JobLogLines(seen))
        logging.getLogger("hybrid_runner.worker").setLevel(logging.INFO)
        async with _producer() as producer:
            if view:
                _say(f"  producer  another process ({producer.pid}), which knows nothing but SQL")
            assert producer.stdout is not None  # noqa: S101  # it is a pipe
            following = asyncio.create_task(watcher.follow(producer.stdout))
            try:
                await _look_until_the_end(seen, watcher, stop, following, view)
            finally:
                following.cancel()
                [end] = await asyncio.gather(following, return_exceptions=True)
                if view:
                    view.end()
            if isinstance(end, Exception):
                raise end
        logging.getLogger("hybrid_runner.worker").removeHandler(lines)
        await watcher.leave_nothing()
        await worker.idle()
        await watcher.count()
    finally:
        await connection.close()


async def _look_until_the_end(
    seen: Observations,
    watcher: Watcher,
    stop: asyncio.Event,
    following: asyncio.Task[None],
    view: View | None,
) -> None:
    seen.started = time.monotonic()
    while not stop.is_set() and seen.elapsed < SECONDS + _LAST_JOBS:
        await watcher.look()
        if view:
            view.refresh()
        if following.done() and (following.exception() or not seen.live):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await stop.wait()


@contextlib.asynccontextmanager
async def _producer() -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hybrid_runner.cli.demo.producer",
        str(SECONDS),
        str(BURST),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        # not an argument: a password would show in the process list
        env=os.environ | {"HYBRID_RUNNER_DSN": app.dsn},
        start_new_session=True,  # Ctrl-C is for this process
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _say(text: str) -> None:
    print(text, flush=True)
