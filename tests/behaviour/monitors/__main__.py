"""`python -m tests.behaviour.monitors --seconds 300`: on a Postgres of its own; exit code 1 if
anything is wrong. With `--restart` everything stops and starts again instead.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter

from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
from tests.behaviour.monitors import restart
from tests.behaviour.monitors.mix import Options, Outcome, mix
from tests.support.server import QUICK, embedded

_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.behaviour.monitors")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--services", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--restart", action="store_true")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with embedded(QUICK | {"synchronous_commit": "on"}) as postgres:
        outcome = asyncio.run(_run(postgres.dsn, given))
    for name, value in outcome.figures:
        print(f"{name:45} {value}")
    if not outcome.violations:
        print("nothing was polled twice at a time, told twice, or lost")
        return 0
    for law, count in Counter(one.law for one in outcome.violations).most_common():
        print(f"{count:6} {law}", file=sys.stderr)
    for violation in outcome.violations[:_SHOWN]:
        print(f"  {violation}", file=sys.stderr)
    return 1


async def _run(dsn: str, given: argparse.Namespace) -> Outcome:
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)

    if given.restart:
        return await restart.run(dsn, restart.Options(services=given.services or 5_000), say)
    options = Options(given.seconds, given.services or 1_000, seed=given.seed)
    return await mix(dsn, options, say)


if __name__ == "__main__":
    sys.exit(main())
