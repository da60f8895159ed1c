"""hybrid-runner monitors."""

from __future__ import annotations

from typing import get_args

from hybrid_runner.cli.monitors import editing, events, importing, looking, polling
from hybrid_runner.cli.monitors.arguments import add_definition, add_file, label, service_name
from hybrid_runner.cli.parsing import (
    LOGS_OF_LONG_COMMANDS,
    Parser,
    add_common,
    duration,
    positive_duration,
    whole,
)
from hybrid_runner.cli.session import run
from hybrid_runner.model.monitor_views import MOST_EVENTS, MOST_LISTED, ServiceState
from hybrid_runner.model.monitors import EventKind

_SENTENCES = {
    "migrate": "make the tables of monitors in this database, or bring them to this version",
    "add": "monitor a service",
    "list": "the monitored services, those that are down first",
    "show": "everything about one service and its dependencies",
    "pause": "poll these services no more",
    "resume": "poll them again",
    "quiet": "tell nothing bad of a service for a while; it is polled all the same",
    "remove": "forget these services",
    "poll": "have a service polled now, and wait for what comes of it",
    "test": "ask a URL and show what would be understood; nothing is stored",
    "events": "what has happened to services",
    "import": "add services from a file, all or none",
}


def configure(parser: Parser) -> None:
    commands = parser.add_commands()
    parts = {
        name: commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        for name, text in _SENTENCES.items()
    }
    _configure_edits(parts)
    _configure_looks(parts)
    _configure_polls(parts)


def _configure_edits(parts: dict[str, Parser]) -> None:
    migrate = parts["migrate"]
    migrate.epilog = (
        "After `hybrid-runner migrate`, as the same role; later on `hybrid-runner migrate` brings"
        " these tables up to date too."
    )
    add_common(migrate, logs=LOGS_OF_LONG_COMMANDS)
    migrate.run_by(lambda arguments: run(editing.migrate(arguments)))

    add = parts["add"]
    add.add_argument("name", metavar="NAME", type=service_name, help="what it is called here")
    add.add_argument("url", metavar="URL", help="what is asked: GET, http or https")
    add_definition(add)
    add_common(add)
    add.run_by(lambda arguments: run(editing.add(arguments)))

    for name in ("pause", "resume", "remove"):
        command = parts[name]
        command.add_argument(
            "names", metavar="NAME", nargs="+", type=service_name, help="the names of the services"
        )
        add_common(command)
        command.run_by(
            lambda arguments, name=name: run(editing.switch(arguments, name))  # type: ignore[misc]  # binds the loop's name
        )

    quiet = parts["quiet"]
    quiet.add_argument("name", metavar="NAME", type=service_name, help="the name of the service")
    quiet.add_argument(
        "lasting", metavar="DURATION", type=duration, help="for how long; 0: tell again"
    )
    add_common(quiet)
    quiet.run_by(lambda arguments: run(editing.quiet(arguments)))

    load = parts["import"]
    load.epilog = (
        "Each service is an object with name and url and, if you like, every, timeout, format,"
        " mapping, expect, headers, follow, fail_after, recover_after, depends_on (a name), labels"
        " and active. What is wrong is said with its line and field, and then nothing is stored."
    )
    load.add_argument("file", metavar="FILE", help="JSON lines, or one JSON array; - reads stdin")
    load.add_argument(
        "--update",
        action="store_true",
        help="change services that are there already, by their names, in the fields that are given",
    )
    add_common(load)
    load.run_by(lambda arguments: run(importing.load(arguments)))


def _configure_looks(parts: dict[str, Parser]) -> None:
    listing = parts["list"]
    listing.add_argument("--state", choices=get_args(ServiceState), help="only those in this state")
    listing.add_argument("--host", help="only those of this host")
    listing.add_argument("--text", help="only those with this in their names")
    listing.add_argument(
        "--label", type=label, metavar="NAME=VALUE", help="only those with this label"
    )
    listing.add_argument(
        "--limit",
        type=whole(1, MOST_LISTED),
        default=200,
        metavar="N",
        help="how many at most (default: 200)",
    )
    add_common(listing)
    listing.run_by(lambda arguments: run(looking.list_services(arguments)))

    show = parts["show"]
    show.add_argument("name", metavar="NAME", type=service_name, help="the name of the service")
    add_common(show)
    show.run_by(lambda arguments: run(looking.show(arguments)))

    listen = parts["events"]
    listen.add_argument(
        "--follow", action="store_true", help="go on with what happens, until Ctrl-C"
    )
    listen.add_argument(
        "--kind",
        choices=get_args(EventKind),
        action="append",
        metavar="KIND",
        help=f"only these, several times if you like: {', '.join(get_args(EventKind))}",
    )
    listen.add_argument("--service", type=service_name, metavar="NAME", help="only of this service")
    listen.add_argument(
        "--suppressed",
        action="store_true",
        help="also what was not told, because of maintenance or of the service it depends on",
    )
    listen.add_argument(
        "--after",
        type=whole(0, 2**63 - 1),
        metavar="ID",
        help="what came behind this event (default: the newest ones)",
    )
    listen.add_argument(
        "--limit",
        type=whole(0, MOST_EVENTS),
        default=20,
        metavar="N",
        help="how many of the past at most (default: 20)",
    )
    add_common(listen, json_help="write each event as JSON on a line of its own")
    listen.run_by(lambda arguments: run(events.listen(arguments)))


def _configure_polls(parts: dict[str, Parser]) -> None:
    poll = parts["poll"]
    poll.add_argument("name", metavar="NAME", type=service_name, help="the name of the service")
    poll.add_argument(
        "--wait-timeout",
        type=positive_duration,
        metavar="DURATION",
        default=polling.PATIENCE,
        help="wait no longer than this (default: 90s)",
    )
    add_common(poll)
    poll.run_by(lambda arguments: run(polling.poll(arguments)))

    test = parts["test"]
    test.epilog = (
        "The request is made from here, not from a worker, and without secrets. It ends with 1 if"
        " such a poll would fail."
    )
    test.add_argument("url", metavar="URL", help="what is asked: GET, http or https")
    add_file(test, "mapping", "how the answer is to be understood, as JSON")
    add_file(test, "expect", "what must be true of the answer, as JSON")
    test.add_argument(
        "--timeout", type=positive_duration, metavar="DURATION", help="for all of it (default: 10s)"
    )
    add_common(test)
    test.run_by(lambda arguments: run(polling.test(arguments)))
