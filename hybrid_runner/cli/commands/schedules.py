"""hybrid-runner schedules."""

from __future__ import annotations

from hybrid_runner.cli.names import kind_name
from hybrid_runner.cli.parsing import Parser, add_common, whole
from hybrid_runner.cli.schedules import editing, looking
from hybrid_runner.cli.schedules.arguments import add_options, schedule_name
from hybrid_runner.cli.session import run
from hybrid_runner.model.schedules import MOST_LISTED, MOST_TICKS

_SENTENCES = {
    "list": "the schedules, when each fires next, and what keeps it from that",
    "show": "everything about one schedule, and its next ticks",
    "add": "store a schedule, or change the one of that name",
    "run": "put a job of a schedule in now, beside its ticks",
    "pause": "let these schedules fire no more",
    "resume": "let them fire again",
    "remove": "forget these schedules; jobs that they have stored go on",
}


def configure(parser: Parser) -> None:
    commands = parser.add_commands()
    parts = {
        name: commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        for name, text in _SENTENCES.items()
    }
    _configure_looks(parser, parts)
    _configure_edits(parts)


def _configure_looks(parser: Parser, parts: dict[str, Parser]) -> None:
    for either in (parser, parts["list"]):
        either.add_argument(
            "--limit",
            type=whole(1, MOST_LISTED),
            default=200,
            metavar="N",
            help="how many at most (default: 200)",
        )
        add_common(either)
        either.run_by(lambda arguments: run(looking.list_schedules(arguments)))

    show = parts["show"]
    _add_name(show)
    show.add_argument(
        "--next",
        type=whole(1, MOST_TICKS),
        default=5,
        metavar="N",
        help="how many of its next ticks (default: 5)",
    )
    add_common(show)
    show.run_by(lambda arguments: run(looking.show(arguments)))


def _configure_edits(parts: dict[str, Parser]) -> None:
    add = parts["add"]
    add.epilog = (
        "It fires whether or not a worker declares it; app.schedule(…) declares one in code."
    )
    _add_name(add)
    add.add_argument("kind", metavar="KIND", type=kind_name, help="which handler runs its jobs")
    add.add_argument(
        "payload",
        metavar="JSON",
        nargs="?",
        default="{}",
        help="what the handler gets; - reads stdin (default: {})",
    )
    add_options(add)
    add_common(add)
    add.run_by(lambda arguments: run(editing.add(arguments)))

    now = parts["run"]
    _add_name(now)
    add_common(now)
    now.run_by(lambda arguments: run(editing.run_now(arguments)))

    for name in ("pause", "resume", "remove"):
        command = parts[name]
        command.add_argument(
            "names", metavar="NAME", nargs="+", type=schedule_name, help="the names of schedules"
        )
        add_common(command)
        command.run_by(
            lambda arguments, name=name: run(editing.switch(arguments, name))  # type: ignore[misc]  # binds the loop's name
        )


def _add_name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=schedule_name, help="the name of the schedule")
