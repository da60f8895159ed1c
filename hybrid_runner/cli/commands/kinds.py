"""hybrid-runner kinds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from hybrid_runner.cli.output import ago, counted, print_json, print_table
from hybrid_runner.cli.parsing import Parser, add_common, duration
from hybrid_runner.cli.session import opened, run
from hybrid_runner.display import one_line
from hybrid_runner.durations import duration_text
from hybrid_runner.model.kinds import KindView, UnknownKind

_LIST = ("KIND", "WORKERS", "QUEUE", "ON END", "BUDGETS", "SEEN")


def configure(parser: Parser) -> None:
    parser.add_argument(
        "--due-for",
        type=duration,
        default=timedelta(minutes=1),
        metavar="DURATION",
        help="how long jobs of unknown kinds must have been due to be listed (default: 1m)",
    )
    add_common(parser)
    parser.run_by(lambda arguments: run(_list(arguments)))


async def _list(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        kinds = await app.list_kinds()
        unknown = await app.unknown_kinds(arguments.due_for)
    if arguments.json:
        print_json({"kinds": [_plain(kind) for kind in kinds], "unknown": unknown})
    else:
        _print(kinds, unknown)
    return 0


def _plain(kind: KindView) -> dict[str, Any]:
    schema = kind.payload_schema
    return {**asdict(kind), "payload_schema": None if schema is None else json.loads(schema)}


def _print(kinds: Sequence[KindView], unknown: Sequence[UnknownKind]) -> None:
    if kinds:
        print_table(_LIST, [_row(kind) for kind in kinds], [_colour(kind) for kind in kinds])
    else:
        print("no worker has declared a kind")
    for one in unknown:
        print(f"unknown: {one_line(str(one))}")


def _row(kind: KindView) -> tuple[str, ...]:
    workers = counted(kind.workers, "worker") if kind.workers else "none lives"
    budgets = ", ".join(_budgets(kind)) or "-"
    return (kind.name, workers, kind.queue, kind.on_end or "-", budgets, ago(kind.seen_at))


def _colour(kind: KindView) -> str:
    return "green" if kind.workers else "red"


def _budgets(kind: KindView) -> Iterator[str]:
    if kind.max_snoozes is not None:
        yield counted(kind.max_snoozes, "snooze")
    if kind.max_duration is not None:
        yield f"{duration_text(kind.max_duration)} in all"
    if kind.finish_within is not None:
        yield f"finished within {duration_text(kind.finish_within)}"
