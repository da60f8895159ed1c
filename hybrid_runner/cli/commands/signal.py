"""hybrid-runner signal."""

from __future__ import annotations

import argparse

from hybrid_runner.cli.json_arguments import payload_of
from hybrid_runner.cli.output import print_json
from hybrid_runner.cli.parsing import Parser, add_common, checked
from hybrid_runner.cli.session import opened, run
from hybrid_runner.model.jobs import check_signal_key


def configure(parser: Parser) -> None:
    parser.add_argument(
        "key", metavar="KEY", type=_key, help="the key that jobs wait for, such as approved:42"
    )
    parser.add_argument(
        "payload",
        metavar="JSON",
        nargs="?",
        default="null",
        help="what these jobs are given; - reads stdin (default: null)",
    )
    add_common(parser)
    parser.run_by(_run)


@checked
def _key(text: str) -> str:
    check_signal_key(text)
    return text


def _run(arguments: argparse.Namespace) -> int:
    return run(_signal(arguments, payload_of(arguments)))


async def _signal(arguments: argparse.Namespace, payload: object) -> int:
    async with opened(arguments) as app:
        number = await app.signal(arguments.key, payload)
    if arguments.json:
        print_json({"id": number, "key": arguments.key})
    else:
        print(f"signal {number} is sent: jobs that wait for {arguments.key!r} are given it")
    return 0
