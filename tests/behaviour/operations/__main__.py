"""`python -m tests.behaviour.operations --seconds 60`: on a Postgres of its own; exit code 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys

from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
from tests.behaviour.operations.mix import Result, mix
from tests.support.server import QUICK, embedded

_SHOWN = 10


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.behaviour.operations")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    given = parser.parse_args()
    print(f"seed {given.seed}: {given.seconds:g} s of random operations", flush=True)
    with embedded(QUICK | {"synchronous_commit": "on"}) as postgres:
        result = asyncio.run(_run(postgres.dsn, given.seconds, given.seed))
    print(f"{result.operations} operations, {result.jobs} jobs committed")
    if not result.violations:
        print("nothing was lost, nothing ran twice, no effect without its completion")
        return 0
    print(f"{len(result.violations)} violations", file=sys.stderr)
    for violation in result.violations[:_SHOWN]:
        print(f"  {violation}", file=sys.stderr)
    return 1


async def _run(dsn: str, seconds: float, seed: int) -> Result:
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()
    return await mix(dsn, seconds, seed)


if __name__ == "__main__":
    sys.exit(main())
