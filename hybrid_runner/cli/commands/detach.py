"""hybrid-runner detach."""

from __future__ import annotations

import argparse
from datetime import timedelta

from hybrid_runner.cli.names import kind_name
from hybrid_runner.cli.output import counted, print_json
from hybrid_runner.cli.parsing import (
    LOGS_OF_LONG_COMMANDS,
    Parser,
    add_common,
    duration,
)
from hybrid_runner.cli.session import make_runner, run
from hybrid_runner.display import harmless


def configure(parser: Parser) -> None:
    parser.epilog = (
        "The table is left as it was before it was attached. Rows that wait keep the queued word,"
        " and their jobs end as cancelled; running jobs are waited for, and rows"
        " that workers write. If some have not ended in time, it says so and ends with 1: detach"
        " again."
    )
    parser.add_argument(
        "table", metavar="TABLE", help="the table, or the number of the source (see sources list)"
    )
    parser.add_argument(
        "--kind", type=kind_name, help="which one, if the table is attached for several kinds"
    )
    parser.add_argument("--cancel-jobs", action="store_true", help="tell running jobs to stop")
    parser.add_argument(
        "--wait",
        type=duration,
        default=timedelta(seconds=30),
        metavar="DURATION",
        help="how long to wait for running jobs, and for a lock that somebody holds (default: 30s)",
    )
    add_common(parser, logs=LOGS_OF_LONG_COMMANDS)
    parser.run_by(lambda arguments: run(_detach(arguments)))


async def _detach(arguments: argparse.Namespace) -> int:
    app = make_runner(arguments)
    try:
        detached = await app.detach(
            arguments.table,
            kind=arguments.kind,
            cancel_jobs=arguments.cancel_jobs,
            wait=arguments.wait,
        )
    finally:
        await app.close()
    if arguments.json:
        print_json(detached)
        return 0
    for note in detached.notes:
        print(f"note: {harmless(note)}")
    ended = f"; {counted(detached.cancelled, 'queued job')} ended" if detached.cancelled else ""
    print(f"{harmless(detached.table)} is detached{ended}")
    return 0
