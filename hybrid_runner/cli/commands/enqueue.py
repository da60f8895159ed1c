"""hybrid-runner enqueue."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any, NoReturn

from hybrid_runner.cli.commands.queues import queue_name
from hybrid_runner.cli.output import as_text, print_json
from hybrid_runner.cli.parsing import Parser, add_common, checked, duration, moment, positive_duration, whole
from hybrid_runner.cli.session import opened, run
from hybrid_runner.cli.waiting import explain, waiting
from hybrid_runner.client import JobHandle
from hybrid_runner.errors import RunnerError
from hybrid_runner.models import JobStatus
from hybrid_runner.registry import NAME

_OPTIONS = ("queue", "key", "priority", "delay", "run_at", "max_attempts", "timeout", "on_conflict")


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument("kind", metavar="KIND", type=_kind, help="which handler runs it")
    parser.add_argument(
        "payload", metavar="JSON", nargs="?", default="{}", help="what the handler gets; - reads stdin (default: {})"
    )
    parser.add_argument("--queue", type=queue_name, help="which fleet runs it (default: default)")
    parser.add_argument("--key", help="at most one live job has this key")
    parser.add_argument("--on-conflict", choices=("exists", "replace", "error"), default="exists", help="what if one has it")
    parser.add_argument("--priority", type=whole(0, 9), default=5, metavar="0-9", help="0 is first (default: 5)")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--delay", type=duration, metavar="DURATION", help="not before so long from now: 30, 30s, 5m")
    when.add_argument(
        "--run-at",
        type=moment,
        metavar="TIME",
        help="not before this time: 2030-01-31T08:00+01:00; without +01:00 it is local time here",
    )
    parser.add_argument("--max-attempts", type=whole(1, 1000), metavar="N", help="how often it may be tried")
    parser.add_argument("--timeout", type=positive_duration, metavar="DURATION", help="how long one attempt may take")
    parser.add_argument("--wait", action="store_true", help="wait for its end and print its result")
    parser.add_argument("--wait-timeout", type=positive_duration, metavar="DURATION", help="wait, but no longer than this")
    add_common(parser)
    parser.run_by(_run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        payload = _read(sys.stdin.read() if arguments.payload == "-" else arguments.payload)
    except (ValueError, RecursionError) as error:
        arguments.parser.error(str(error))
    return run(_enqueue(arguments, payload))


async def _enqueue(arguments: argparse.Namespace, payload: Any) -> int:
    async with opened(arguments) as app:
        handle = await app.enqueue(arguments.kind, payload, **{name: getattr(arguments, name) for name in _OPTIONS})
        said: dict[str, Any] = {"id": handle.id, "outcome": handle.outcome}
        waits = arguments.wait or arguments.wait_timeout is not None
        if not arguments.json:
            print(f"job {handle.id} {_outcome(handle, arguments.key)}", flush=True)
        elif not waits:
            print_json(said)
        if waits:
            await _wait(handle, arguments, said)
    return 0


async def _wait(handle: JobHandle[Any], arguments: argparse.Namespace, said: dict[str, Any]) -> None:
    """Its result or its failure; with --json there is a document in any case, or the id would be lost."""
    seen: list[JobStatus] = []
    try:
        with waiting(sys.stderr, seen) as on_status:
            result = await handle.wait(arguments.wait_timeout, on_status=on_status)
    except (RunnerError, asyncio.CancelledError) as error:
        text = explain(error, seen[-1] if seen else None)
        if arguments.json:
            print_json(said | {"state": seen[-1].state.value if seen else None, "error": text})
        if isinstance(error, asyncio.CancelledError):  # Ctrl-C
            raise
        raise RunnerError(text) from error
    if arguments.json:
        print_json(said | {"state": "completed", "result": result})
    else:
        print(f"job {handle.id} completed: {as_text(result)}")


def _outcome(handle: JobHandle[Any], key: str | None) -> str:
    return f"exists: it holds the key {key!r}, nothing was stored" if handle.outcome == "exists" else handle.outcome


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"the payload is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise ValueError("the payload is nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"the payload is not JSON: there is no {name} in it")


@checked
def _kind(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not a kind: use 1 to 128 letters, digits and . _ : / -")
    return text
