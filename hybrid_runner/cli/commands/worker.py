"""hybrid-runner worker."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from hybrid_runner.cli.event_loop import make_loop
from hybrid_runner.cli.parsing import LOGS_OF_LONG_COMMANDS, Parser, add_common, checked, whole
from hybrid_runner.cli.session import layout_of, start_logs, warn_of_unknown_variables
from hybrid_runner.cli.target import load_app, split_target
from hybrid_runner.cli.worker_loop import only_by_signals, run_loop
from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.handlers.kind import check_queue
from hybrid_runner.runner import Runner
from hybrid_runner.storage.migrations import require_schema
from hybrid_runner.supervisor.fleet import Fleet
from hybrid_runner.supervisor.process import Command
from hybrid_runner.supervisor.supervised import Supervised
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.setup import (
    has_logs_of_its_own,
    is_shown,
    logs_of_import,
    use_logs_of_application,
)
from hybrid_runner.web.server import PageServer
from hybrid_runner.worker.interpreter import allow_more_files, collect_garbage_less_often
from hybrid_runner.worker.signals import stop_on_signals

log = logging.getLogger("hybrid_runner.cli")

MOST_PROCESSES = 64
_LONGEST_NAME = 200
_THREAD_PATIENCE = 0.5


def configure(parser: Parser) -> None:
    parser.epilog = (
        "Example: hybrid-runner worker tasks:app --queue images=20 --queue default. SIGTERM or"
        " Ctrl-C ends it in order, a second one at once. All it has to say is logged to stderr;"
        " stdout stays empty."
    )
    parser.add_argument(
        "target",
        metavar="MODULE:APP",
        type=checked(split_target),
        help="the module, and the Runner in it",
    )
    parser.add_argument(
        "--queue",
        metavar="QUEUE[=SLOTS]",
        type=_queue,
        action="append",
        default=[],
        dest="queues",
        help=(
            "work on this queue, so many jobs at a time (default: all queues of the handlers, and"
            " `default`)"
        ),
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=whole(1, MOST_PROCESSES),
        default=1,
        help=(
            "so many workers, each a process with slots and connections of its own; one that dies"
            " is started again (default: 1)"
        ),
    )
    add_common(
        parser, json_help="log as JSON: short for --log-format json", logs=LOGS_OF_LONG_COMMANDS
    )
    parser.run_by(_run)


def _run(arguments: argparse.Namespace) -> int:
    collect_garbage_less_often()
    allow_more_files()
    supervised = Supervised.find(os.environ)
    if supervised is not None:
        return _run_as_child(arguments, supervised)
    folder = Path.cwd()  # before the module is imported: it may go elsewhere
    app, queues = _prepare(arguments)
    _tell_whose_logs_these_are(app)
    warn_of_unknown_variables()
    _warn_of_unnamed_queues(app, queues)
    if arguments.processes == 1:
        return _run_loop(_work(app, queues))
    with asyncio.Runner() as runner:
        make_loop(runner)
        code = runner.run(_supervise(app, queues, arguments.processes, folder))
    return _end(code)


def _prepare(arguments: argparse.Namespace) -> tuple[Runner, dict[str, int]]:
    """The app, with its logs and settings, and the slots of each queue."""
    queues = _without_duplicates(arguments)
    if arguments.json:
        arguments.log_format = arguments.log_format or "json"
    with logs_of_import(arguments.log_level, layout_of(arguments.log_format or "")):
        app = load_app(*arguments.target)
    app.use(dsn=arguments.dsn, log_level=arguments.log_level, log_format=arguments.log_format)
    settings = app.settings
    if not _leaves_logs_alone(settings.logs.log_format):
        start_logs(arguments, settings)
    else:
        use_logs_of_application(settings.logs.log_level if settings.is_given("log_level") else None)
    return app, {queue: count or app.usual_slots(queue) for queue, count in queues.items()}


def _leaves_logs_alone(log_format: str) -> bool:
    """Whether log lines are left to the logging that the application has set up."""
    return log_format == "app" or (log_format == "auto" and has_logs_of_its_own())


def _tell_whose_logs_these_are(app: Runner) -> None:
    """A library that logs something while it is imported sets up logging, too: a worker that then
    says nothing at all would be a riddle.
    """
    logs = app.settings.logs
    if logs.log_format == "auto" and has_logs_of_its_own() and not is_shown(logs.log_level):
        print(
            "hybrid-runner: logging is as the application set it up; --log-format console for"
            " hybrid-runner's own",
            file=sys.stderr,
        )


# --- one process


def _run_loop(work: Coroutine[Any, Any, int]) -> int:
    try:
        code = run_loop(work)
    except SystemExit as end:  # the second signal
        return _end(end.code if isinstance(end.code, int) else 1)
    return _end(code)


async def _work(app: Runner, queues: dict[str, int], supervised: Supervised | None = None) -> int:
    """Work until a signal; one that comes before the worker runs ends it as well."""
    if supervised is None:
        pages = app.settings.pages
        server = PageServer(pages.http_host, pages.http_port, database=app.page_database())
        with _ended_by_signals():
            async with server as served:
                await app.work(queues or None, served.show, only_by_signals(stop_on_signals))
    else:
        async with supervised.reporting(app.settings.work.grace):
            stop = only_by_signals(supervised.stop_on_signals)
            await app.work(queues or None, supervised.show, stop)
    return 0


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT cancel this task, until the worker installs handlers of its own."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101  # called within a task
    signals = []

    def stop() -> None:
        signals.append(True)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        yield
    except asyncio.CancelledError:
        if not signals:
            raise


# --- many


def _run_as_child(arguments: argparse.Namespace, supervised: Supervised) -> int:
    """Run as one of several processes: the parent serves the pages and reports a failed start."""
    supervised.accept_signals()
    try:
        app, queues = _prepare(arguments)
        with contextlib.ExitStack() as stack:
            if (postgres := supervised.share_postgres()) is not None:
                stack.callback(postgres.close)
                app.use(dsn=postgres.dsn)
            app.use(worker_id=supervised.worker_id)
            return _run_loop(_work(app, queues, supervised))
    except RunnerError as error:
        log.debug("this process cannot start", exc_info=True, extra=log_event("command.failed"))
        supervised.refuse(str(error))
        return 1


async def _supervise(app: Runner, queues: dict[str, int], size: int, folder: Path) -> int:
    """Check what can be checked once for all, then start the processes."""
    settings = app.settings
    fleet = Fleet(size, _checked_name(settings.work.worker_id, size), settings.work.grace)
    code = 0
    server = PageServer(
        settings.pages.http_host, settings.pages.http_port, fleet, app.page_database()
    )
    async with server as pages, AsyncExitStack() as stack:
        stack.push_async_callback(app.close)  # it keeps the embedded Postgres
        with _ended_by_signals():
            await _check(app, queues)
            embedded = None if app.embedded is None else str(app.embedded.directory)
            code = await fleet.run(
                Command([sys.executable, *sys.orig_argv[1:]], folder, embedded), pages.announce
            )
    return code


async def _check(app: Runner, queues: dict[str, int]) -> None:
    """Check what would end every child, so that the parent ends with one line instead."""
    connection = await app.connect(app.settings.database.start_timeout)
    try:
        await require_schema(connection)
    finally:
        await connection.close()
    app.worker(queues or None)


def _checked_name(worker_id: str | None, size: int) -> str | None:
    longest = _LONGEST_NAME - len(f"-{size}")
    if worker_id is not None and len(worker_id) > longest:
        raise ConfigurationError(
            f"worker_id: at most {longest} characters with --processes {size}, which adds a number"
            " to it"
        )
    return worker_id


def _end(code: int) -> int:
    """Return the exit code, or end the process at once if a handler's thread does not end: its job
    is queued again, and Python would wait for the thread.
    """
    deadline = time.monotonic() + _THREAD_PATIENCE
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                log.warning(
                    "a handler's thread (%s) does not end: leaving without it",
                    thread.name,
                    extra=log_event("worker.thread_abandoned"),
                )
                logging.shutdown()
                sys.stdout.flush()
                os._exit(code)
    return code


def _warn_of_unnamed_queues(app: Runner, queues: Iterable[str]) -> None:
    """Warn of queues that no handler names: most likely they are misspelled. `default` is where
    jobs go that name no queue.
    """
    named = sorted({kind.queue for kind in app.registry})
    for queue in (queue for queue in queues if named and queue not in (*named, "default")):
        log.warning(
            "no handler names the queue %r (they name: %s); jobs inserted into it still run if"
            " their kind is known",
            queue,
            ", ".join(named),
            extra=log_event("queue.unnamed"),
        )


def _without_duplicates(arguments: argparse.Namespace) -> dict[str, int | None]:
    queues: dict[str, int | None] = {}
    for name, slots in arguments.queues:
        if name in queues:
            arguments.parser.error(f"argument --queue: {name!r} is given twice")
        queues[name] = slots
    return queues


@checked
def _queue(text: str) -> tuple[str, int | None]:
    name, equals, slots = text.partition("=")
    check_queue(name)
    if not equals:
        return name, None
    try:
        return name, whole(1, 100_000)(slots)
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"slots of {name!r}: {error}") from None
