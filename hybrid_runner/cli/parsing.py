"""The parser of arguments, whose errors are one line, and the arguments that commands share."""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.jobs import LARGEST_ID

T = TypeVar("T")
_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+\s*")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line that ends with the command that explains more."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})
        # -5s is a value too, and its type says what is wrong with it
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self._commands: argparse._SubParsersAction[Parser] | None = None

    def add_commands(self) -> argparse._SubParsersAction[Parser]:
        """Let commands follow this one; one of them must be given."""
        self._commands = commands = self.add_subparsers(metavar="COMMAND", parser_class=Parser)

        def none_given(_: argparse.Namespace) -> int:
            self.error(f"name a command: {', '.join(commands.choices)}")

        self.set_defaults(run=none_given, parser=self)
        return commands

    def run_by(self, run: Callable[[argparse.Namespace], int]) -> None:
        """Set what to do once the arguments are there."""
        self.set_defaults(run=run, parser=self)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse everything; what is left over is the chosen command's error."""
        arguments: argparse.Namespace
        arguments, unknown = self.parse_known_args(argv)
        if unknown:
            where: Parser = arguments.parser
            where.error(_unexpected(unknown[0]))
        return arguments

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Unknown options first: left in place they make argparse complain of something else."""
        for word in itertools.takewhile(self._is_for_this, args or ()):
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                hint = (
                    "; other options come after a command"
                    if self._commands
                    else did_you_mean(option, [*self._option_string_actions])
                )
                self.error(f"there is no option {option}{hint}")
        return super().parse_known_args(args, namespace)

    def _is_for_this(self, word: str) -> bool:
        """Whether the word is neither behind `--` nor for a command below this one."""
        return word != "--" and not (self._commands and word in self._commands.choices)

    def error(self, message: str) -> NoReturn:
        """Exit with 2 and one line on stderr."""
        self.exit(2, f"hybrid-runner: {' '.join(message.split())}; see {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            what = f"command {value!r}" if action.metavar == "COMMAND" else repr(value)
            guess = did_you_mean(str(value), names) or f" (there are: {', '.join(names)})"
            raise argparse.ArgumentError(
                None if action.metavar == "COMMAND" else action, f"there is no {what}{guess}"
            )


def _unexpected(word: str) -> str:
    if word.startswith("-") and not word.lstrip("-.")[:1].isdecimal():
        return f"there is no option {word[:40]}"
    return f"{word!r} is one argument too many"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint to append, or nothing."""
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


JSON_HELP = "write JSON to stdout, and nothing else"
LOGS_OF_SHORT_COMMANDS = "HYBRID_RUNNER_LOG_LEVEL, else error"
LOGS_OF_LONG_COMMANDS = "HYBRID_RUNNER_LOG_LEVEL, else info"


def add_common(
    parser: Parser, *, json_help: str = JSON_HELP, logs: str = LOGS_OF_SHORT_COMMANDS
) -> None:
    """Add the options that every command has."""
    parser.add_argument(
        "--dsn",
        type=_dsn,
        help=(
            "Postgres to use (default: HYBRID_RUNNER_DSN, else an embedded one); everybody on this"
            " machine sees it in `ps`, so put a password in HYBRID_RUNNER_DSN, in PGPASSWORD or in"
            " a passfile"
        ),
    )
    parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help=f"what to log to stderr (default: {logs})",
    )
    parser.add_argument(
        "--log-format",
        choices=("auto", "console", "json", "app"),
        help=(
            "how to log it; app: as the application has set up logging; auto: that if it has, else"
            " console (default: HYBRID_RUNNER_LOG_FORMAT, else auto)"
        ),
    )


def checked(convert: Callable[[str], T]) -> Callable[[str], T]:
    """A type for add_argument: the text of what `convert` raises is the error that is shown."""

    def converted(text: str) -> T:
        try:
            return convert(text)
        except (ConfigurationError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number between two bounds."""

    def converted(text: str) -> int:
        number = _as_number(text)
        if number is None or not low <= number <= high:
            raise ValueError(f"{text[:40]!r} is not a whole number {low} to {high}")
        return number

    return checked(converted)


@checked
def job_id(text: str) -> int:
    """The number of a job."""
    number = _as_number(text)
    if number is None or number < 1:
        raise ValueError(f"{text[:40]!r} is not a whole number from 1 up")
    if number > LARGEST_ID:
        raise ValueError(f"{text[:40]!r} is larger than the id of any job")
    return number


def _as_number(text: str) -> int | None:
    """None if it is not one; of a number that is far too large the first digits are enough."""
    return int(text.strip()[:40]) if _WHOLE_NUMBER.fullmatch(text) else None


@checked
def duration(text: str) -> timedelta:
    """Such as 30, 30s or 5m; zero too."""
    try:
        length = parse_duration(text.removeprefix("-"))
    except ConfigurationError:
        length = None
    if length is None or (length and text.startswith("-")):
        raise ValueError(
            f"{text[:60]!r} is not a duration from zero to ten years: write it like 30, 30s, 5m or"
            " 1h30m"
        )
    return length


@checked
def positive_duration(text: str) -> timedelta:
    """Such as 30, 30s or 5m; not zero."""
    if not (length := duration(text)):
        raise ValueError("it must be more than zero")
    return length


@checked
def moment(text: str) -> datetime:
    """An ISO date and time; without a zone it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text[:60]!r} is not a date and time: write it like 2030-01-31T08:00 or"
            " 2030-01-31T08:00+01:00"
        ) from None


@checked
def _dsn(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty: leave it out to use the embedded Postgres")
    return text
