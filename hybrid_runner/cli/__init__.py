"""The command line. Exit codes: 0 done, 1 a failure explained in one line, 2 wrong use; there is never a traceback.

Each command is a module with `configure(parser)`, which declares the arguments and sets `run`; only the module of the
command that was asked for is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from hybrid_runner.cli.output import one_line
from hybrid_runner.cli.parsing import Parser
from hybrid_runner.errors import RunnerError
from hybrid_runner.version import VERSION

log = logging.getLogger("hybrid_runner.cli")

COMMANDS = {
    "demo": "see it work: a worker, and jobs that arrive by plain SQL",
    "migrate": "bring the database to this version's schema",
    "sql": "print what migrate would run, for psql",
    "worker": "run jobs: MODULE:APP names your Runner",
    "enqueue": "put a job in, and wait for it if you like",
    "jobs": "list, show, cancel and retry jobs",
    "queues": "pause and resume queues",
}
"""Name and help; hybrid_runner.cli.commands.<name> does it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    _write_what_the_terminal_can()
    try:
        arguments = _parse(sys.argv[1:] if argv is None else list(argv))
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except RunnerError as error:
        log.debug("the command failed", exc_info=True)
        return _complain(str(error))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        _write_nothing_more()
        return 128 + signal.SIGPIPE
    except SystemExit as end:  # argparse has said why
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:  # a bug, and still no traceback unless it is wanted
        log.debug("the command failed", exc_info=True)
        return _complain(f"unexpected {type(error).__name__}: {error} (--log-level debug shows where; please report it)")
    return code


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser(
        prog="hybrid-runner",
        description="A job runner that lives in Postgres: INSERT a row, and a worker runs it.",
        epilog="Without --dsn and HYBRID_RUNNER_DSN, an embedded Postgres in your data folder is used.",
    )
    parser.add_argument("--version", action="version", version=f"hybrid-runner {VERSION}")
    commands = parser.add_commands()
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name in argv:
            import_module(f"hybrid_runner.cli.commands.{name}").configure(command)
    return parser.parse(argv)


def _complain(message: str) -> int:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    print("hybrid-runner:", one_line(message), file=sys.stderr)
    return 1


def _write_what_the_terminal_can() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _write_nothing_more() -> None:
    """Keep the interpreter's last flush from complaining about the closed pipe."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
