"""hybrid-runner sql."""

from __future__ import annotations

import argparse
import sys

from hybrid_runner.cli.output import print_json
from hybrid_runner.cli.parsing import Parser, add_common
from hybrid_runner.cli.session import run, start_logs
from hybrid_runner.errors import DatabaseUnavailable
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import as_script, schema_version
from hybrid_runner.storage.queries import migrations


def configure(parser: Parser) -> None:
    parser.epilog = (
        "From the database's version on, or from the start when there is no DSN; nothing is changed"
        " or started."
    )
    add_common(parser)
    parser.run_by(lambda arguments: run(_print(arguments)))


async def _print(arguments: argparse.Namespace) -> int:
    settings = Settings.load(dsn=arguments.dsn)
    start_logs(arguments, settings, quiet=True)
    at = 0 if settings.database.dsn is None else await _version_of(settings.database.dsn)
    script = as_script(at)
    if arguments.json:
        print_json({"from": at, "to": migrations()[-1].version, "sql": script})
    else:
        print(script, end="")
    return 0


async def _version_of(dsn: str) -> int:
    try:
        connection = await connect(dsn)
    except DatabaseUnavailable as error:
        print(f"hybrid-runner: {error}: printing from the start", file=sys.stderr)
        return 0
    try:
        return await schema_version(connection)
    finally:
        await connection.close()
