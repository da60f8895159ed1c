"""hybrid-runner migrate."""

from __future__ import annotations

import argparse

from hybrid_runner.cli.output import print_json
from hybrid_runner.cli.parsing import LOGS_OF_LONG_COMMANDS, Parser, add_common
from hybrid_runner.cli.session import make_runner, run
from hybrid_runner.storage.queries import Migration, migrations


def configure(parser: Parser) -> None:
    parser.epilog = (
        "Safe to run from many processes at once, and while others work; a server that does not"
        " answer is waited for (start_timeout), and a lock that somebody holds, two seconds at a"
        " time, for five minutes."
    )
    add_common(parser, logs=LOGS_OF_LONG_COMMANDS)
    parser.run_by(lambda arguments: run(_migrate(arguments)))


async def _migrate(arguments: argparse.Namespace) -> int:
    app = make_runner(arguments)
    try:
        applied = await app.migrate(wait=app.settings.database.start_timeout)
    finally:
        await app.close()
    _report(applied, as_json=arguments.json)
    return 0


def _report(applied: list[Migration], *, as_json: bool) -> None:
    version = migrations()[-1].version
    if as_json:
        print_json(
            {
                "version": version,
                "applied": [{"version": step.version, "name": step.name} for step in applied],
            }
        )
        return
    for step in applied:
        print(f"applied {step.version:04d} {step.name}")
    print(f"now at version {version}" if applied else f"already at version {version}")
