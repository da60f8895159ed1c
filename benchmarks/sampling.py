"""Where a worker's processor time goes for each job of a drain, sampled by py-spy (`pip install
py-spy`; Linux, as root).

In the checkout that is to be sampled, then anywhere:

    python -m benchmarks.sampling take after.json --jobs 100000
    python -m benchmarks.sampling draw before.json after.json --output docs/pictures/profile.png

`take` uses only names of the package that old versions have too, so it can sample an old checkout:
`PYTHONPATH=old/checkout python benchmarks/sampling.py take before.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg

from hybrid_runner import Runner
from hybrid_runner.embedded import use_embedded

SAMPLES_A_SECOND = 400
COLOURS = ("#a8a29e", "#2563eb")
ABOVE_ALL = "the rest"
GROUPS = (  # a sample belongs to the group that its innermost known frame fits
    ("asyncpg: the wire, values, statements", r"asyncpg"),
    ("the event loop", r"uvloop|asyncio|selectors"),
    ("pydantic, orjson", r"pydantic|orjson|json/"),
    ("OpenTelemetry", r"opentelemetry|telemetry/tracing"),
    ("logging", r"logging/|telemetry/logs"),
    (
        "hybrid_runner: claims, records",
        r"hybrid_runner/(storage|models?)\b|worker/(queue/)?(claimer|frontier)",
    ),
    ("hybrid_runner: settling", r"worker/settler|policy/settl|outcomes"),
    (
        "hybrid_runner: running attempts",
        r"hybrid_runner/(worker|handlers|registry|job|runner)|contextlib|random",
    ),
)


async def drain(dsn: str, jobs: int, sampled: Path) -> float:
    """Let one worker do no-op jobs under py-spy; the processor seconds that it used."""
    await Runner(dsn).migrate()
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO hybrid_runner.jobs (queue, kind) SELECT 'profile', 'noop' FROM"
        " generate_series(1, $1::int)",
        jobs,
    )
    await connection.execute("VACUUM ANALYZE hybrid_runner.jobs")
    await connection.close()
    app = Runner(dsn)

    @app.job("noop")
    async def noop(_payload: Any) -> None: ...

    command = [
        "py-spy",
        "record",
        "--native",
        "--format",
        "raw",
        "--rate",
        str(SAMPLES_A_SECOND),
        "--duration",
        "600",
    ]
    spy = await asyncio.create_subprocess_exec(
        *command, "--output", sampled, "--pid", str(os.getpid()), stdout=DEVNULL
    )
    await asyncio.sleep(3)  # until it has read the symbols
    async with app, app.worker({"profile": app.settings.work.slots}) as worker:
        begun = time.process_time()
        await worker.settled(jobs)
        spent = time.process_time() - begun
        spy.send_signal(signal.SIGINT)
        await spy.wait()
    return spent


def grouped(sampled: str) -> Counter[str]:
    """Samples by group."""
    found: Counter[str] = Counter()
    for line in sampled.splitlines():
        stack, _, count = line.rpartition(" ")
        if (
            "profile" not in stack
            and "run_until_complete" not in stack
            and "run_forever" not in stack
        ):
            continue  # another thread
        found[_owner(stack.split(";"))] += int(count)
    return found


def _owner(frames: list[str]) -> str:
    for frame in reversed(frames):
        for name, pattern in GROUPS:
            if re.search(pattern, frame):
                return name
    return ABOVE_ALL


def take(file: Path, jobs: int, keep: Path | None) -> None:
    """Sample this checkout's worker."""
    with tempfile.TemporaryDirectory() as folder, _fast() as loop:
        embedded = use_embedded(Path(folder) / "postgres")
        try:
            seconds = loop.run(drain(embedded.dsn, jobs, Path(folder) / "sampled.txt"))
            sampled = (Path(folder) / "sampled.txt").read_text()
        finally:
            embedded.close()
    if keep:
        keep.write_text(sampled)
    found = grouped(sampled)
    each = seconds / jobs * 1e6 / found.total()
    result = {
        "jobs": jobs,
        "samples": found.total(),
        "microseconds": {name: found[name] * each for name in found},
    }
    file.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _fast() -> asyncio.Runner:
    try:
        import uvloop  # noqa: PLC0415  # optional
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def draw(files: list[Path], output: Path) -> None:
    """Draw a bar for each file, with its parts beside those of the others."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # not to sample
    from matplotlib.figure import Figure  # noqa: PLC0415

    shown = {path.stem: json.loads(path.read_text())["microseconds"] for path in files}
    names = [name for name, _ in GROUPS if any(name in found for found in shown.values())] + [
        ABOVE_ALL
    ]
    figure = Figure(figsize=(8.5, 4.8), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    height = 0.8 / len(shown)
    for place, (stem, found) in enumerate(shown.items()):
        values = [found.get(name, 0.0) for name in names]
        rows = [-row - height * place for row in range(len(names))]
        colour = COLOURS[place - len(shown)]
        axes.barh(
            rows,
            values,
            height * 0.9,
            color=colour,
            label=f"{stem}: {sum(found.values()):.1f} µs a job",
        )
        for row, value in zip(rows, values, strict=True):
            axes.text(value, row, f" {value:.1f}", va="center", fontsize=7)
    axes.set_yticks(
        [-row - height * (len(shown) - 1) / 2 for row in range(len(names))], names, fontsize=8
    )
    axes.set_xlabel("processor time of the worker, µs for each job of a drain")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, loc="lower right")
    figure.savefig(output)


def main() -> None:
    """Take or draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    taking = commands.add_parser("take", help="sample one drain")
    taking.add_argument("file", type=Path)
    taking.add_argument("--jobs", type=int, default=100_000)
    taking.add_argument("--keep", type=Path, help="a file for py-spy's stacks")
    drawing = commands.add_parser("draw", help="a picture of what was sampled")
    drawing.add_argument("files", type=Path, nargs="+")
    drawing.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.command == "take":
        take(arguments.file, arguments.jobs, arguments.keep)
    else:
        draw(arguments.files, arguments.output)


if __name__ == "__main__":
    main()
