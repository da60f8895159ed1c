"""docs/cli.md, written from the parser: `python -m tests.docs.cli_page`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from hybrid_runner.cli import EXIT_CODES, make_parser
from hybrid_runner.cli.parsing import Parser, add_common

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

_HEAD = """\
# Command line

Written from `hybrid_runner/cli` by `python -m tests.docs.cli_page`; a test keeps it current.

`hybrid-runner COMMAND [options]`, or `python -m hybrid_runner`. Without `--dsn` and `HYBRID_RUNNER_DSN` an embedded Postgres
in your data folder is used; all other [settings](settings.md) come from the environment too.
"""

_EXIT_CODES = """
## Exit codes

| code | what it says |
|---|---|
{}

No command ends with a traceback, once Python itself has started: Ctrl-C in its first 30 ms or so may show one of Python's own.
`--log-level debug` logs where an error came from. `worker` ends with 0 after a first SIGTERM or Ctrl-C, whatever its jobs did, and
with 128 and the signal's number after a second one. With `--processes` a process that did not stop in order shows too, with the code
that a shell would give: 137 if it was killed. `demo` ends with 0 after Ctrl-C too.

## JSON

With `--json` a command writes one JSON document on one line to stdout; errors stay one line on stderr. Times are in ISO 8601
and UTC, durations in seconds. `enqueue --json --wait` writes `id`, `enqueued`, `state` and `result`, or in place of the result
`error` when the job failed, was cancelled, or had not ended in time (then the exit code is 1, and `state` is the last that
was seen).

## Logs

Log lines go to stderr. `worker` and `migrate` log from info up and say in a warning which Postgres was started for them and
how to look into it; the other commands log errors only, unless `--log-level` or `HYBRID_RUNNER_LOG_LEVEL` asks for more.
"""


def page() -> str:
    """The page as it should be."""
    codes = "\n".join(f"| {code} | {text} |" for code, text in EXIT_CODES.items())
    common = Parser()
    add_common(common)
    usual = {
        row for action in common._actions if (row := _row(action))
    }  # argparse has no other way
    parts = [
        _HEAD,
        "\n## Options of every command\n\n",
        _table(sorted(usual)),
        "\nWhere a command differs, its own table says so.\n",
    ]
    for parser in commands(make_parser()):
        parts.append(f"\n## {parser.prog}\n\n{parser.description}")
        rows = [row for action in parser._actions if (row := _row(action)) and row not in usual]
        parts.append("\n\n" + _table(rows) if rows else "\n")
        if parser.epilog:
            parts.append(f"\n{parser.epilog}\n")
    return "".join(parts) + _EXIT_CODES.format(codes)


def commands(parser: Parser) -> Iterator[Parser]:
    """Every command that does something, in the order of the help."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for command in action.choices.values():
            yield from commands(command)


def _table(rows: list[str]) -> str:
    return "| argument | what it is |\n|---|---|\n" + "".join(f"{row}\n" for row in rows)


def _row(action: argparse.Action) -> str:
    if isinstance(action, argparse._HelpAction):
        return ""
    name = ", ".join(action.option_strings)
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    shown = name if action.nargs == 0 else f"{name} {value}".strip()
    many = "..." if action.nargs == "+" else ""
    optional = f"[{shown}]" if action.nargs == "?" else shown
    return f"| `{optional}{many}` | {action.help} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
