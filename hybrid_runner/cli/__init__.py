"""The command line. It ends with one of EXIT_CODES; there is never a traceback. Each command is a
module with `configure(parser)`, which declares its arguments and sets `run`. Only the module of the
command that was asked for is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Container, Sequence
from importlib import import_module
from typing import Any

from hybrid_runner import secrets
from hybrid_runner.cli.parsing import Parser
from hybrid_runner.cli.streams import is_of_writing, prepare_streams, write_nothing_more
from hybrid_runner.display import one_line
from hybrid_runner.errors import RunnerError
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.cli")

COMMANDS = {
    "demo": "see it work: a worker, and jobs that arrive by plain SQL",
    "migrate": "bring the database to this version's schema",
    "sql": "print what migrate would run, for psql",
    "worker": "run jobs: MODULE:APP names your Runner",
    "enqueue": "put a job in, and wait for it if you like",
    "jobs": "list, show, cancel and retry jobs",
    "kinds": "list the kinds that workers know, and due jobs that nobody can run",
    "queues": "pause and resume queues",
    "attach": "make an existing table a source of jobs",
    "detach": "leave the table as it was",
    "sources": "list and show the attached tables",
    "schedules": "make, list, preview, run, pause and remove schedules",
    "signal": "send a signal to the jobs that wait for it",
    "monitors": "monitor services: their health, and what has become of it",
    "bench": "measure it on this machine: speed, pickup, what it costs",
}
"""Name and help of each command; its module is hybrid_runner.cli.commands.<name>."""

EXIT_CODES = {
    0: "done; help or the version was shown",
    1: "it failed, and one line on stderr says why",
    2: "wrong use: the line on stderr names what, and the help that helps",
    130: "ended by Ctrl-C",
    141: "whoever read the output has gone",
}
"""Exit codes of the process, and what they mean."""

_EPILOG = (
    "Without --dsn and HYBRID_RUNNER_DSN, an embedded Postgres in your data folder is used.\n\nexit"
    " codes:\n" + "".join(f"  {code:<9} {text}\n" for code, text in EXIT_CODES.items())
)


def main(argv: Sequence[str] | None = None, *, ready: Callable[[], None] = lambda: None) -> int:
    """Run one command and return its exit code; `ready` is called between the imports and the
    command.
    """
    prepare_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv), ready)
        sys.stdout.flush()
    except BrokenPipeError:
        write_nothing_more()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if is_of_writing(error):
            write_nothing_more()
            return _complain(f"cannot write to stdout: {error.strerror or error}")
        return _unexpected(error)
    return code


def _run(argv: list[str], ready: Callable[[], None]) -> int:
    secrets.learn_environment()
    try:
        arguments = make_parser(argv).parse(argv)
        secrets.learn_dsn(getattr(arguments, "dsn", None))
        ready()
        code: int = arguments.run(arguments)
    except RunnerError as error:
        log.debug("the command failed", exc_info=True, extra=log_event("command.failed"))
        return _complain(str(error))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except SystemExit as end:  # argparse has said why
        return end.code if isinstance(end.code, int) else 1
    except OSError:
        raise
    except Exception as error:  # a bug, and still no traceback unless it is wanted
        return _unexpected(error)
    return code


def make_parser(wanted: Container[str] = COMMANDS) -> Parser:
    """The whole command line; the arguments of a command only if it is wanted."""
    parser = Parser(
        prog="hybrid-runner",
        description="A job runner that lives in Postgres: INSERT a row, and a worker runs it.",
        epilog=_EPILOG,
        formatter_class=_Help,
    )
    # To find the version takes 20 ms.
    version = import_module("hybrid_runner.version").VERSION if "--version" in wanted else ""
    parser.add_argument("--version", action="version", version=f"hybrid-runner {version}")
    commands = parser.add_commands()
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name in wanted:
            import_module(f"hybrid_runner.cli.commands.{name}").configure(command)
    return parser


class _Help(argparse.RawDescriptionHelpFormatter):
    """With room for the longest name of a command, which argparse measures without its indent."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **options)
        self._action_max_length = max(map(len, COMMANDS)) + 4


def _unexpected(error: Exception) -> int:
    log.debug("the command failed", exc_info=error, extra=log_event("command.failed"))
    return _complain(
        f"unexpected {type(error).__name__}: {error} (--log-level debug shows where; please"
        " report it)"
    )


def _complain(message: str) -> int:
    """Print one line to stderr, after what is still buffered for stdout."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        print("hybrid-runner:", one_line(secrets.hide(message)), file=sys.stderr)
    return 1
