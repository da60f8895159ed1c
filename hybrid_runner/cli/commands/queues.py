"""hybrid-runner queues."""

from __future__ import annotations

import argparse

from hybrid_runner.cli.names import queue_name
from hybrid_runner.cli.output import print_json
from hybrid_runner.cli.parsing import Parser, add_common
from hybrid_runner.cli.session import opened, run


def configure(parser: Parser) -> None:
    commands = parser.add_commands()
    for name, text in (
        ("pause", "let no worker claim from these queues"),
        ("resume", "let workers claim again"),
    ):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument(
            "queues", metavar="QUEUE", nargs="+", type=queue_name, help="the names of the queues"
        )
        add_common(command)
        command.run_by(lambda arguments, name=name: run(_switch(arguments, name)))  # type: ignore[misc]  # binds the loop's name


async def _switch(arguments: argparse.Namespace, what: str) -> int:
    async with opened(arguments) as app:
        call = app.pause if what == "pause" else app.resume
        changed = {queue: await call(queue) for queue in dict.fromkeys(arguments.queues)}
    if arguments.json:
        print_json(
            [
                {"queue": queue, "paused": what == "pause", "changed": changes}
                for queue, changes in changed.items()
            ]
        )
        return 0
    done, was = (
        ("is paused", "was paused already") if what == "pause" else ("is resumed", "was not paused")
    )
    for queue, changes in changed.items():
        print(f"queue {queue} {done if changes else was}")
    return 0
