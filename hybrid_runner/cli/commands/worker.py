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
from collections.abc import Callable, Iterable

from hybrid_runner.cli.parsing import LOGS_OF_LONG_COMMANDS, Parser, add_common, checked, whole
from hybrid_runner.cli.session import start_logs
from hybrid_runner.cli.target import load_app, split_target
from hybrid_runner.registry import check_queue
from hybrid_runner.runner import Runner
from hybrid_runner.telemetry.logs import configure_logs

log = logging.getLogger("hybrid_runner.cli")

_LONGEST_FAREWELL = 0.5


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        "Example: hybrid-runner worker tasks:app --queue images=20 --queue default. SIGTERM or Ctrl-C ends it in order, "
        "a second one at once. All it has to say is logged to stderr; stdout stays empty."
    )
    parser.add_argument("target", metavar="MODULE:APP", type=checked(split_target), help="the module, and the Runner in it")
    parser.add_argument(
        "--queue", metavar="QUEUE[=SLOTS]", type=_queue, action="append", default=[], dest="queues",
        help="work on this queue, so many jobs at a time (default: all queues of the handlers, and `default`)",
    )  # fmt: skip
    add_common(parser, json_help="log as JSON: short for --log-format json", logs=LOGS_OF_LONG_COMMANDS)
    parser.run_by(_run)


def _run(arguments: argparse.Namespace) -> int:
    queues = _without_duplicates(arguments)
    if arguments.json:
        arguments.log_format = arguments.log_format or "json"
    configure_logs(arguments.log_level or "info", arguments.log_format or "console")  # for what the module logs
    app = load_app(*arguments.target)
    app.use(dsn=arguments.dsn, log_level=arguments.log_level, log_format=arguments.log_format)
    start_logs(arguments, app.settings)
    _warn_of_strange_queues(app, queues)
    slots = {queue: count or app.settings.slots for queue, count in queues.items()}
    try:
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            code = runner.run(_work(app, slots))
    except SystemExit as end:  # the second signal
        return _end(end.code if isinstance(end.code, int) else 1)
    return _end(code)


async def _work(app: Runner, queues: dict[str, int]) -> int:
    """Work until a signal; one that comes before the worker runs ends it as well."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101  # we are in one
    signals = []

    def stop() -> None:
        signals.append(True)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)  # run_worker takes over once it is open
    try:
        await app.run_worker(queues or None)
    except asyncio.CancelledError:
        if not signals:
            raise
    return 0


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415  # optional, and of use to nobody else

        return uvloop.new_event_loop
    return None


def _end(code: int) -> int:
    """Leave, also when a handler's thread never ends: its job went back to the queue, and Python would wait for it."""
    deadline = time.monotonic() + _LONGEST_FAREWELL
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                log.warning("a handler's thread (%s) does not end: leaving without it", thread.name)
                logging.shutdown()
                sys.stdout.flush()
                os._exit(code)
    return code


def _warn_of_strange_queues(app: Runner, queues: Iterable[str]) -> None:
    """A queue that no handler names is most likely misspelled; `default` is where jobs go that name none."""
    named = sorted({kind.queue for kind in app.registry})
    for queue in (queue for queue in queues if named and queue not in (*named, "default")):
        log.warning(
            "no handler names the queue %r (they name: %s); jobs inserted into it still run if their kind is known",
            queue,
            ", ".join(named),
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
