"""Arguments that say what a service is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hybrid_runner.cli.json_arguments import read_json
from hybrid_runner.cli.parsing import Parser, checked, positive_duration, whole

LONGEST_NAME = 200
_LARGEST = 64 * 1024
"""Characters of a file; what is stored of a service has as many bytes at most."""


@checked
def service_name(text: str) -> str:
    """The name of a service, which may be nearly anything."""
    if not 1 <= len(text) <= LONGEST_NAME:
        raise ValueError(f"the name of a service has 1 to {LONGEST_NAME} characters")
    return text


@checked
def label(text: str) -> tuple[str, str]:
    """A label and its value."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text[:60]!r} is no label: write it as NAME=VALUE")
    return name, value


@checked
def header(text: str) -> tuple[str, str]:
    """A header of the request."""
    name, colon, value = text.partition(":")
    if not (name.strip() and colon):
        raise ValueError(f"{text[:60]!r} is no header: write it as 'Name: value'")
    return name.strip(), value.strip()


@checked
def json_file(text: str) -> dict[str, Any]:
    """An object in a file."""
    try:
        with Path(text).open(encoding="utf-8") as file:
            said = file.read(_LARGEST + 1)
    except OSError as error:
        raise ValueError(f"{text}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{text} is no text in UTF-8") from None
    if len(said) > _LARGEST:
        raise ValueError(f"{text} is larger than {_LARGEST >> 10} KiB")
    value = read_json(said, text)
    if not isinstance(value, dict):
        raise ValueError(f"{text} holds no JSON object")  # noqa: TRY004  # `checked` wants it
    return value


def add_file(parser: Parser, name: str, text: str) -> None:
    """Add an option that names a file with JSON."""
    parser.add_argument(f"--{name}", type=json_file, metavar="FILE", help=text)


def add_definition(parser: Parser) -> None:
    """Add an option for each thing that can be said of a service."""
    parser.add_argument(
        "--every", type=positive_duration, metavar="DURATION", help="how often (default: 30s)"
    )
    parser.add_argument(
        "--timeout", type=positive_duration, metavar="DURATION", help="for all of it (default: 10s)"
    )
    parser.add_argument(
        "--format",
        choices=("dependencies", "mapping", "status"),
        help=(
            "what it answers: dependencies in the usual shape, a shape that --mapping explains, or"
            " nothing that is read (default: mapping with --mapping, else dependencies)"
        ),
    )
    add_file(parser, "mapping", "how the answer is to be understood, as JSON")
    add_file(parser, "expect", "what must be true of the answer, as JSON")
    parser.add_argument(
        "--header",
        type=header,
        action="append",
        metavar="'NAME: VALUE'",
        help="sent with the request; {name} in the value stands for a secret of the workers",
    )
    parser.add_argument(
        "--follow", type=whole(0, 10), metavar="N", help="how many redirects (default: 0)"
    )
    parser.add_argument(
        "--fail-after",
        type=whole(1, 100),
        metavar="N",
        help="failed polls in a row after which it is down (default: 1)",
    )
    parser.add_argument(
        "--recover-after",
        type=whole(1, 100),
        metavar="N",
        help="good polls in a row after which it is up again (default: 1)",
    )
    parser.add_argument(
        "--depends-on",
        type=service_name,
        metavar="NAME",
        help="the service without which it cannot work: while that is down, nothing is told of it",
    )
    parser.add_argument(
        "--label", type=label, action="append", metavar="NAME=VALUE", help="what to find it by"
    )


def given_fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was said of a service, by the names of `NewService`."""
    plain = (
        "every",
        "timeout",
        "format",
        "mapping",
        "expect",
        "follow",
        "fail_after",
        "recover_after",
        "depends_on",
    )
    fields = {name: getattr(arguments, name) for name in plain}
    fields["headers"] = _by_name(arguments, "header")
    fields["labels"] = _by_name(arguments, "label")
    return {name: value for name, value in fields.items() if value is not None}


def _by_name(arguments: argparse.Namespace, option: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for name, value in getattr(arguments, option) or ():
        if name in found:
            arguments.parser.error(f"argument --{option}: {name[:60]!r} is given twice")
        found[name] = value
    return found or None
