"""`make chaos`: exit code 1 if anything is wrong, with the first few of what is."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.behaviour.chaos.harness import Harness, Options

_SHOWN = 10


def main() -> int:
    """Run, print, judge."""
    options = _options()
    print(
        f"seed {options.seed}: {options.jobs} jobs, {options.workers} workers, {options.seconds:g}"
        " s of faults",
        flush=True,
    )
    folder, began = Path(tempfile.mkdtemp(prefix="hybrid-runner-chaos-")), time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)

    try:
        outcome = asyncio.run(Harness(options, folder, say).run())
    except BaseException:
        print(f"broken off; all that was written down is in {folder}", file=sys.stderr)
        raise
    print()
    for name, value in (
        ("seed", str(options.seed)),
        ("seconds", f"{time.monotonic() - began:.0f}"),
        *outcome.figures,
    ):
        print(f"{name:45} {value}")
    if not outcome.violations:
        print("nothing was lost, nothing ended twice, nothing was settled without its claim")
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(
        f"\n{len(outcome.violations)} violations; all that was written down is in {folder}",
        file=sys.stderr,
    )
    for violation in outcome.violations[:_SHOWN]:
        print(f"  {violation}", file=sys.stderr)
    return 1


def _options() -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m tests.behaviour.chaos",
        description="Random faults, then the question: is all there?",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=600,
        help="how long faults and inserts go on (default: 600)",
    )
    parser.add_argument("--workers", type=int, default=4, help="worker processes (default: 4)")
    parser.add_argument(
        "--jobs",
        type=int,
        help="jobs to insert in that time (default: 250 in 3 s, 50000 in ten minutes)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.randrange(1 << 16),
        help="repeats the faults and jobs of an earlier run",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=120,
        help="seconds that remain to finish the work (default: 120)",
    )
    given = parser.parse_args()
    given.jobs = max(1, round(given.seconds * 250 / 3)) if given.jobs is None else given.jobs
    if min(given.seconds, given.workers, given.jobs, given.patience) <= 0:
        parser.error("seconds, workers, jobs and patience must be more than zero")
    return Options(given.seconds, given.workers, given.jobs, given.seed, given.patience)


if __name__ == "__main__":
    sys.exit(main())
