"""hybrid-runner enqueue."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, assert_never, cast

from hybrid_runner.cli.json_arguments import payload_of, read_json
from hybrid_runner.cli.names import kind_name, queue_name
from hybrid_runner.cli.output import as_text, print_json
from hybrid_runner.cli.parsing import (
    Parser,
    add_common,
    checked,
    duration,
    moment,
    positive_duration,
    whole,
)
from hybrid_runner.cli.session import opened, run, show_typos
from hybrid_runner.cli.waiting import waiting
from hybrid_runner.client.handle import JobHandle
from hybrid_runner.errors import KeyTaken, RunnerError
from hybrid_runner.handlers.key_use import MOST_ITEMS, WORDS
from hybrid_runner.handlers.options import EnqueueOptions, option_texts
from hybrid_runner.model.jobs import JobStatus
from hybrid_runner.runner import Runner

_FOR_PROGRAMS = "connection"
"""The one option of `app.enqueue` that only a program can give."""


def configure(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", type=kind_name, help="which handler runs it")
    parser.add_argument(
        "payload",
        metavar="JSON",
        nargs="?",
        default="{}",
        help="what the handler gets; - reads stdin (default: {})",
    )
    _add_options(parser)
    parser.add_argument("--wait", action="store_true", help="wait for its end and print its result")
    parser.add_argument(
        "--wait-timeout",
        type=positive_duration,
        metavar="DURATION",
        help="wait, but no longer than this",
    )
    add_common(parser)
    parser.run_by(_run)


def _add_options(parser: Parser) -> None:
    """Add an option for each one of `app.enqueue`."""
    arguments: dict[str, dict[str, Any]] = {
        "queue": {"type": queue_name},
        "key": {},
        "on_conflict": {"choices": WORDS},
        "priority": {"type": whole(0, 9), "metavar": "0-9"},
        "run_at": {"type": moment, "metavar": "TIME"},
        "delay": {"type": duration, "metavar": "DURATION"},
        "max_attempts": {"type": whole(1, 1000), "metavar": "N"},
        "timeout": {"type": positive_duration, "metavar": "DURATION"},
        "finish_by": {"type": moment, "metavar": "TIME"},
        "max_snoozes": {"type": whole(0, 2**31 - 1), "metavar": "N"},
        "max_duration": {"type": positive_duration, "metavar": "DURATION"},
        "finish_within": {"type": positive_duration, "metavar": "DURATION"},
        "start_by": {"type": moment, "metavar": "TIME"},
        "max_wait": {"type": positive_duration, "metavar": "DURATION"},
        "max_items": {"type": whole(1, MOST_ITEMS), "metavar": "N"},
        "unique_for": {"type": positive_duration, "metavar": "DURATION"},
        "data": {"type": _data, "metavar": "JSON"},
    }
    when = parser.add_mutually_exclusive_group()
    for name, text in option_texts().items():
        if name != _FOR_PROGRAMS:
            where = when if name in ("run_at", "delay") else parser
            where.add_argument(_flag(name), help=text.replace("`", ""), **arguments[name])


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _run(arguments: argparse.Namespace) -> int:
    return run(_enqueue(arguments, payload_of(arguments)))


async def _enqueue(arguments: argparse.Namespace, payload: Any) -> int:
    async with opened(arguments) as app:
        show_typos(arguments, app)
        handle = await _put_in(app, arguments, payload)
        said: dict[str, Any] = {"id": handle.id, "enqueued": handle.enqueued}
        waits = arguments.wait or arguments.wait_timeout is not None
        if not arguments.json:
            print(f"job {handle.id} {_enqueued(handle, arguments.key)}", flush=True)
        elif not waits:
            print_json(said)
        if waits:
            await _wait(handle, arguments, said)
    return 0


async def _put_in(app: Runner, arguments: argparse.Namespace, payload: Any) -> JobHandle[Any]:
    try:
        return await app.enqueue(arguments.kind, payload, **_given(arguments))
    except KeyTaken as error:
        held = str(error).rpartition(": ")[0]  # behind it, what a program can do
        raise RunnerError(
            f"{held}: wait for it, or choose --on-conflict exists or --on-conflict replace"
        ) from error


def _given(arguments: argparse.Namespace) -> EnqueueOptions:
    named = {name: getattr(arguments, name) for name in option_texts() if name != _FOR_PROGRAMS}
    return cast("EnqueueOptions", named)


async def _wait(
    handle: JobHandle[Any], arguments: argparse.Namespace, said: dict[str, Any]
) -> None:
    """Print the job's result, or raise its failure. With --json there is always a document: only
    it has the job's id.
    """
    seen: list[JobStatus] = []
    try:
        with waiting(sys.stderr, seen) as on_status:
            result = await handle.wait(arguments.wait_timeout, on_status=on_status)
    except (RunnerError, asyncio.CancelledError) as error:
        text = str(error) or "interrupted"
        if arguments.json:
            print_json(said | {"state": seen[-1].state.value if seen else None, "error": text})
        if isinstance(error, asyncio.CancelledError):  # Ctrl-C
            if not arguments.json:
                print(f"hybrid-runner: job {handle.id} goes on", file=sys.stderr)
            raise
        raise RunnerError(text) from error
    if arguments.json:
        print_json(said | {"state": "completed", "result": result})
    else:
        print(f"job {handle.id} completed: {as_text(result)}")


def _enqueued(handle: JobHandle[Any], key: str | None) -> str:
    match handle.enqueued:
        case "exists":
            return f"exists: it holds the key {key!r}, nothing was stored"
        case "follows":
            return f"follows: it begins when the job that holds the key {key!r} has ended"
        case "collected":
            return "collected: it waits, and has these items too"
        case "inserted" | "replaced":
            return handle.enqueued
        case _:
            assert_never(handle.enqueued)


@checked
def _data(text: str) -> Any:
    return read_json(text, "the data")
