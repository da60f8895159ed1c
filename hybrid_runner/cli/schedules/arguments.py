"""The arguments of `hybrid-runner schedules add`: the options of `app.schedule`."""

from __future__ import annotations

import argparse
from typing import Any, cast

from hybrid_runner.cli.json_arguments import payload_of
from hybrid_runner.cli.parsing import Parser, checked, moment, whole
from hybrid_runner.handlers.schedule_options import ScheduleOptions, option_texts
from hybrid_runner.handlers.schedules import check_schedule_name, make_schedule

_TYPES: dict[str, dict[str, Any]] = {
    "at": {"type": moment, "metavar": "TIME"},
    "starts_at": {"type": moment, "metavar": "TIME"},
    "ends_at": {"type": moment, "metavar": "TIME"},
    "every": {"metavar": "DURATION"},
    "timeout": {"metavar": "DURATION"},
    "catch_up": {"metavar": "DURATION"},
    "jitter": {"metavar": "DURATION"},
    "cron": {"metavar": "EXPRESSION"},
    "timezone": {"metavar": "ZONE"},
    "priority": {"type": whole(0, 9), "metavar": "0-9"},
    "max_attempts": {"type": whole(1, 1000), "metavar": "N"},
    "overlap": {"metavar": "WORD"},
    "missed": {"metavar": "WORD"},
}


@checked
def schedule_name(text: str) -> str:
    """The name of a schedule."""
    check_schedule_name(text)
    return text


def add_options(parser: Parser) -> None:
    """Add an option for each one of a schedule. What they take is checked as for Python, so that
    it is refused in the same words.
    """
    for name, text in option_texts().items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, help=text.replace("`", ""), **_TYPES.get(name, {}))


def asked_for(arguments: argparse.Namespace) -> tuple[Any, ScheduleOptions]:
    """Payload and options of the schedule that was asked for; ConfigurationError says what is wrong
    with it, before anybody asks a server.
    """
    payload = payload_of(arguments)
    options = {name: getattr(arguments, name) for name in option_texts()}
    make_schedule(lambda _: None, arguments.name, arguments.kind, payload, options)
    return payload, cast("ScheduleOptions", options)
