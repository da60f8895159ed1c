"""A runner for the length of one command."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from hybrid_runner.cli.event_loop import make_loop
from hybrid_runner.client.kind_names import LOGGER
from hybrid_runner.runner import Runner
from hybrid_runner.settings import Settings, unknown_variables
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.setup import configure_logs

log = logging.getLogger("hybrid_runner.cli")


def start_logs(arguments: argparse.Namespace, settings: Settings, *, quiet: bool = False) -> None:
    """Log as the arguments say, else as the settings do; a quiet command logs errors only, unless a
    level was asked for.
    """
    usual = "error" if quiet and not settings.is_given("log_level") else settings.logs.log_level
    configure_logs(
        arguments.log_level or usual,
        layout_of(arguments.log_format or settings.logs.log_format),
    )


def layout_of(log_format: str) -> str:
    """How a log line of this process is written: json or console."""
    return "json" if log_format == "json" else "console"


def warn_of_unknown_variables() -> None:
    """A variable that looks like a setting and is none is most likely misspelled."""
    for warning in unknown_variables():
        log.warning(warning, extra=log_event("settings.unknown"))


def make_runner(arguments: argparse.Namespace, *, quiet: bool = False) -> Runner:
    """A runner without handlers, not open yet."""
    app = Runner(arguments.dsn)
    start_logs(arguments, app.settings, quiet=quiet)
    warn_of_unknown_variables()
    return app


def show_typos(arguments: argparse.Namespace, app: Runner) -> None:
    """In a command that logs errors only, warn all the same of a kind that no worker has declared
    and that looks like another one.
    """
    if arguments.log_level is None and not app.settings.is_given("log_level"):
        logging.getLogger(LOGGER).setLevel(logging.WARNING)


@asynccontextmanager
async def opened(arguments: argparse.Namespace) -> AsyncIterator[Runner]:
    """An open runner for a short command; a server that does not answer is an error at once."""
    app = make_runner(arguments, quiet=True)
    try:
        await app.open()
        yield app
    finally:
        await app.close()


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run a command to its exit code."""
    try:
        with asyncio.Runner() as runner:
            make_loop(runner)
            return runner.run(work)
    finally:
        work.close()  # Ctrl-C may come before it began; a coroutine that never ran would complain
