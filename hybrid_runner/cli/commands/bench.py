"""hybrid-runner bench."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from hybrid_runner.bench.plots import ADVICE, can_draw, draw_all
from hybrid_runner.bench.running import run as run_scenarios
from hybrid_runner.bench.scenarios import SCENARIOS
from hybrid_runner.bench.sizes import FULL, QUICK
from hybrid_runner.bench.table import HEADERS, described, rows_of
from hybrid_runner.cli.output import align, in_colour, paint, print_json
from hybrid_runner.cli.parsing import Parser, add_common, checked, did_you_mean
from hybrid_runner.cli.session import run
from hybrid_runner.cli.status_line import StatusLine
from hybrid_runner.display import one_line, progress_bar
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.telemetry.logs.setup import configure_logs


def configure(parser: Parser) -> None:
    parser.epilog = (
        "Scenarios: "
        + "; ".join(f"{name}: {what}" for name, what in SCENARIOS.items())
        + ". Each figure stands beside another one of the same run, and their ratio is what counts."
        " Without --dsn a Postgres is started for it and removed afterwards; HYBRID_RUNNER_DSN"
        " and the embedded one of your data folder are left alone."
    )
    parser.add_argument(
        "scenarios",
        metavar="SCENARIO",
        nargs="*",
        type=_scenario,
        help=f"what to measure (default: all): {', '.join(SCENARIOS)}",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a minute's worth: to see that it runs, not for figures",
    )
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        type=Path,
        help="write results.json there, and a picture per scenario",
    )
    add_common(parser, logs="errors only")
    for action in parser._actions:  # noqa: SLF001  # --dsn means something else here
        if action.dest == "dsn":
            action.help = (
                "a database without jobs, to measure on (default: a Postgres of its own, gone"
                " afterwards)"
            )
    parser.run_by(lambda arguments: run(_bench(arguments)))


@checked
def _scenario(name: str) -> str:
    """Check the name of a scenario (argparse's own `choices` would refuse an empty list)."""
    if name not in SCENARIOS:
        guess = did_you_mean(name, [*SCENARIOS]) or f" (there are: {', '.join(SCENARIOS)})"
        raise ValueError(f"there is no {name[:40]!r}{guess}")
    return name


async def _bench(arguments: argparse.Namespace) -> int:
    configure_logs(arguments.log_level or "error", arguments.log_format or "console")
    folder: Path | None = arguments.output
    if folder is not None:
        _prepare(folder)
    names = [name for name in SCENARIOS if name in (arguments.scenarios or SCENARIOS)]
    progress = _Progress(len(names))
    results = await run_scenarios(
        names, QUICK if arguments.quick else FULL, arguments.dsn, progress.show
    )
    results["about"]["sizes"] = "quick" if arguments.quick else "full"
    if folder is not None:
        _write(results, folder)
    if arguments.json:
        print_json(results)
    else:
        _print(results)
    return 1 if any(scenario.get("error") for scenario in results["scenarios"].values()) else 0


class _Progress:
    """On stderr: a line for each scenario that has ended, and on a terminal a bar below them."""

    def __init__(self, count: int) -> None:
        self._line = StatusLine(sys.stderr)
        self._count = count
        self._ended = 0
        self._begun = 0.0

    def show(self, name: str, share: float, what: str) -> None:
        """A scenario begins at 0; at 1 it has ended, and `what` says why it was not measured."""
        if share == 0 and not what:
            self._begun = time.monotonic()
        if share < 1:
            bar = progress_bar((self._ended + share) / self._count)
            self._line.show(f"{bar} {name} {one_line(what)}".rstrip())
            return
        self._ended += 1
        self._line.clear()
        result = f"not measured: {one_line(what)}" if what else "done"
        took = time.monotonic() - self._begun
        print(f"{name}: {result}, {took:.1f} s", file=sys.stderr, flush=True)


def _prepare(folder: Path) -> None:
    """Fail before minutes of measuring if the results cannot be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").touch()
    except OSError as error:
        raise ConfigurationError(f"cannot write to {folder}: {error.strerror or error}") from None


def _write(results: dict[str, Any], folder: Path) -> None:
    (folder / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if can_draw():
        draw_all(results, folder)
    else:
        print(ADVICE, file=sys.stderr)


def _print(results: dict[str, Any]) -> None:
    rows = rows_of(results)
    widths = [max(len(row[column]) for row in (HEADERS, *rows)) for column in range(len(HEADERS))]
    on = in_colour(sys.stdout)
    print(paint(align(HEADERS, widths), "dim", on=on))
    last = ""
    for name, *cells in rows:
        print(align(("" if name == last else name, *cells), widths))
        last = name
    print(paint(f"\n{described(results['about'])}", "dim", on=on))
    if results["about"]["sizes"] == "quick":
        print("These are quick sizes: they show that it runs, not how fast it is.")
