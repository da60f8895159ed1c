"""The contest's results as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hybrid_runner.bench.table import number

_COLOURS = {
    "hybrid_runner": "#2563eb",
    "pgqueuer": "#ea580c",
    "procrastinate": "#16a34a",
    "graphile-worker": "#9333ea",
}


def draw_all(results: dict[str, Any], folder: Path) -> None:
    """A PNG for each scenario."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    for name, scenario in results["scenarios"].items():
        figure = Figure(figsize=(8.5, 5), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        if name in {"drain", "pickup"}:
            _bars(scenario, axes, "rate" if name == "drain" else "p50_ms")
        else:
            _lines(scenario, axes, "p50_ms" if name == "paced" else "rate")
        axes.set_title(name, loc="left", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(folder / f"peers_{name}.png")


def _bars(scenario: dict[str, Any], axes: Any, key: str) -> None:
    shown = {name: found[key] for name, found in scenario.items() if key in found}
    axes.barh(
        [*shown][::-1], [*shown.values()][::-1], color=[_colour(name) for name in shown][::-1]
    )
    axes.set_xlabel("jobs a second" if key == "rate" else "from INSERT to handler, p50, ms")
    for place, value in enumerate([*shown.values()][::-1]):
        axes.text(value, place, f" {number(value)}", va="center", fontsize=8)
    axes.margins(x=0.15)


def _lines(scenario: dict[str, Any], axes: Any, key: str) -> None:
    names = dict.fromkeys(name for case in scenario.values() for name in case)
    for name in names:
        style = "-" if "," not in name else "--"
        for flush in (False, True):  # a line each
            cases = {
                words: case.get(name, {}).get(key)
                for words, case in scenario.items()
                if ("flush" in words) is flush
            }
            axes.plot(
                [*cases],
                [*cases.values()],
                f"o{style}",
                label=None if flush else name,
                color=_colour(name),
            )
    axes.set_yscale("log")
    axes.set_ylabel(
        "single-row INSERTs a second" if key == "rate" else "from INSERT to handler, p50, ms"
    )
    axes.tick_params(axis="x", labelrotation=20, labelsize=8)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _colour(name: str) -> str:
    return _COLOURS.get(name.partition(",")[0], "#57534e")
