"""hybrid-runner attach."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import Any

from hybrid_runner.attach.options import option_texts
from hybrid_runner.cli.names import kind_name, queue_name
from hybrid_runner.cli.output import counted, print_json
from hybrid_runner.cli.parsing import (
    LOGS_OF_LONG_COMMANDS,
    Parser,
    add_common,
    positive_duration,
)
from hybrid_runner.cli.session import make_runner, run
from hybrid_runner.display import harmless
from hybrid_runner.model.source_views import Attached
from hybrid_runner.model.sources import Columns, Words

_COLUMNS = {
    "status": "the column that says how far a row is (required, or --guess)",
    "worker_id": "the column for the name of the worker that runs it",
    "started_at": "the column for the time at which its attempt began",
    "heartbeat_at": "the column for the last sign of life while it runs",
    "retry_count": "the column for the number of attempts that ended badly",
    "finished_at": "the column for the time of its end",
    "result": "the column for what the handler returned",
    "error": "the column for the last error's message, or, of type json, for all errors",
}
_WORDS = {
    "queued": "the status of a row that waits for a worker (default: taken from --when, where that"
    " says COLUMN = 'WORD')",
    "running": "the status while it runs (required, or --guess)",
    "completed": "the status of a good end (required, or --guess)",
    "failed": "the status of a bad one (required, or --guess)",
    "cancelled": "the status of a row whose job was cancelled (default: that of a bad end)",
    "snoozed": "the status while it waits by its own choice (default: the one while it runs)",
}
_SWITCHES = ("scan", "trust_owner", "guess", "check", "sql")


def configure(parser: Parser) -> None:
    parser.epilog = (
        "Example: hybrid-runner attach audits --kind audit --status status --queued pending"
        " --running processing --completed completed --failed failed --worker-id"
        " processing_worker_id. Once, as a migration would; again makes everything anew. It needs"
        " the rights of the table's owner and of hybrid_runner's, and is not for superusers, unless"
        " the owner is one. A held lock is"
        " waited for, two seconds at a time."
    )
    parser.add_argument(
        "table", metavar="TABLE", help="the table, as SQL names it: audits, app.audits"
    )
    parser.add_argument(
        "--kind", type=kind_name, required=True, help="which handler works on its rows"
    )
    _add_options(parser)
    for name, text in _COLUMNS.items():
        parser.add_argument(_flag(name), metavar="COLUMN", help=text)
    for name, text in _WORDS.items():
        parser.add_argument(_flag(name), metavar="WORD", help=text)
    add_common(parser, logs=LOGS_OF_LONG_COMMANDS)
    parser.run_by(lambda arguments: run(_attach(arguments)))


def _add_options(parser: Parser) -> None:
    """Add an option for each one of `app.attach`."""
    arguments: dict[str, dict[str, Any]] = {
        "when": {"metavar": "SQL"},
        "cancel_when": {"metavar": "SQL"},
        "queue": {"type": queue_name},
        "priority": {"metavar": "SQL"},
        "run_at": {"metavar": "SQL"},
        "key": {"metavar": "COLUMNS"},
        "payload": {"metavar": "COLUMNS"},
        "on_delete": {"choices": ("cancel", "ignore")},
        "backfill": {"choices": ("all", "none")},
        "wait": {"type": positive_duration, "metavar": "DURATION"},
    }
    arguments |= {name: {"action": "store_true"} for name in _SWITCHES}
    modes = parser.add_mutually_exclusive_group()
    for name, text in option_texts().items():
        where = modes if name in ("check", "sql") else parser
        where.add_argument(_flag(name), help=text.replace("`", ""), **arguments[name])


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


async def _attach(arguments: argparse.Namespace) -> int:
    app = make_runner(arguments, quiet=arguments.sql)
    options: Any = {name: getattr(arguments, name) for name in option_texts()}
    try:
        attached = await app.attach(
            arguments.table,
            kind=arguments.kind,
            words={field.name: getattr(arguments, field.name) for field in fields(Words)},
            columns={field.name: getattr(arguments, field.name) for field in fields(Columns)},
            **options,
        )
    finally:
        await app.close()
    if arguments.json:
        print_json(attached)
    elif attached.sql is not None:
        _print_notes(attached, to_stderr=True)
        print(attached.sql, end="")
    else:
        _print_notes(attached)
        _print_done(attached)
    return 0


def _print_notes(attached: Attached, *, to_stderr: bool = False) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    if attached.guessed:
        print(f"guessed: {harmless(' '.join(attached.guessed))}", file=stream)
    for note in attached.notes:
        print(f"note: {harmless(note)}", file=stream)


def _print_done(attached: Attached) -> None:
    what = f"{harmless(attached.table)} {{}} for kind {attached.kind}, queue {attached.queue}"
    if not attached.is_kept:
        print(f"{what.format('can be attached')}; nothing was changed")
        return
    print(f"{what.format(f'is attached as source {attached.id}')}")
    if attached.queued:
        print(
            f"{counted(attached.queued, 'row')} that {_were(attached.queued)} wanted already:"
            " queued"
        )


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
