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
from hybrid_runner.cli.demo.figures import Figures
from hybrid_runner.cli.demo.screen import screen
from hybrid_runner.cli.demo.summary import as_document, print_advice, print_summary
from hybrid_runner.cli.demo.view import draw
from hybrid_runner.cli.demo.watcher import Watcher, WorkersWords
from hybrid_runner.cli.output import counted, in_colour, print_json
from hybrid_runner.cli.parsing import Parser, add_common
from hybrid_runner.cli.session import run, start_logs
from hybrid_runner.worker.worker import Worker

BURST = 5_000
SLOTS = 200
LIVE_SECONDS, PLAIN_SECONDS = 18.0, 7.0
_LOOK, _FRAME = 0.2, 0.1
_LAST_JOBS = 4.0


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        f"On a terminal it shows itself live, until q or for {LIVE_SECONDS:.0f} seconds; "
        "elsewhere it writes plain lines and ends by itself."
    )
    add_common(parser, logs="errors only")
    parser.run_by(lambda arguments: run(_demo(arguments)))


async def _demo(arguments: argparse.Namespace) -> int:
    live = (
        sys.stdout.isatty()
        and not arguments.json
        and arguments.log_level is None
        and os.environ.get("TERM") != "dumb"
    )
    say = (lambda _: None) if arguments.json else _say
    start_logs(arguments, app.settings)
    if arguments.log_level is None:  # the worker's words are shown as events
        for handler in logging.getLogger().handlers:
            handler.setLevel(logging.ERROR)
    app.use(dsn=arguments.dsn)
    stop = _stop_on_signals()

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
        figures = Figures()
        async with app.worker({"demo": SLOTS}) as worker:
            say(
                f"  worker    this process: queue demo, {SLOTS} slots,"
                f" {counted(len(app.registry), 'kind')} of jobs"
            )
            await _watch(figures, worker, stop, live=live, silent=arguments.json)
        if arguments.json:
            print_json(as_document(figures))
        else:
            print_summary(figures)
            print_advice(app)
    finally:
        await app.close()
    return 0


async def _watch(
    figures: Figures, worker: Worker, stop: asyncio.Event, *, live: bool, silent: bool
) -> None:
    """Let the producer work and show what happens."""
    connection = await app.connect()
    watcher = Watcher(figures, connection, worker, BURST)
    seconds = LIVE_SECONDS if live else PLAIN_SECONDS
    try:
        await worker.hearing()
        await watcher.begin()
        logging.getLogger("hybrid_runner.worker").addHandler(words := WorkersWords(figures))
        logging.getLogger("hybrid_runner.worker").setLevel(logging.INFO)
        async with _producer(seconds) as producer:
            if not live and not silent:
                _say(f"  producer  another process ({producer.pid}), which knows nothing but SQL")
            assert producer.stdout is not None  # noqa: S101  # it is a pipe
            following = asyncio.create_task(watcher.follow(producer.stdout))
            showing = asyncio.create_task(
                _show_live(figures, stop) if live else _show_lines(figures, silent=silent)
            )
            try:
                await _look_until_the_end(figures, watcher, stop, seconds, following, showing)
            finally:
                following.cancel()
                showing.cancel()
                ends = await asyncio.gather(following, showing, return_exceptions=True)
            for failure in (end for end in ends if isinstance(end, Exception)):
                raise failure
        logging.getLogger("hybrid_runner.worker").removeHandler(words)
        await watcher.leave_nothing()
        await worker.idle()
        await watcher.count()
    finally:
        await connection.close()


async def _look_until_the_end(
    figures: Figures,
    watcher: Watcher,
    stop: asyncio.Event,
    seconds: float,
    *helping: asyncio.Task[None],
) -> None:
    figures.started = time.monotonic()
    while not stop.is_set() and figures.elapsed < seconds + _LAST_JOBS:
        await watcher.look()
        if not figures.producing and not figures.live:
            return
        if any(task.done() and task.exception() for task in helping):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await stop.wait()


@contextlib.asynccontextmanager
async def _producer(seconds: float) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hybrid_runner.cli.demo.producer",
        str(seconds),
        str(BURST),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ
        | {
            "HYBRID_RUNNER_DSN": app.dsn
        },  # not an argument: a password would show in the process list
        start_new_session=True,  # Ctrl-C is for us
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _show_live(figures: Figures, stop: asyncio.Event) -> None:
    coloured = in_colour(sys.stdout)
    with screen(stop.set) as terminal:
        while True:
            size = terminal.size
            terminal.show(draw(figures, *size, coloured=coloured, until=LIVE_SECONDS), size)
            await asyncio.sleep(_FRAME)


async def _show_lines(figures: Figures, *, silent: bool) -> None:
    while not silent:
        while figures.events:
            at, text = figures.events.popleft()
            _say(f"  {at:5.1f} s  {text}")
        await asyncio.sleep(_FRAME)


def _say(text: str) -> None:
    print(text, flush=True)


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
