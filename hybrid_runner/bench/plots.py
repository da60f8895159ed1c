"""Results as pictures, with matplotlib: an extra, imported only when pictures are wanted."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_runner.bench.table import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ADVICE = 'no pictures without matplotlib: pip install "hybrid-runner[bench]"'
_OURS, _BESIDE = "#2563eb", "#a8a29e"


def can_draw() -> bool:
    """Whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_all(results: dict[str, Any], folder: Path) -> list[Path]:
    """One PNG for each scenario that has something to show."""
    return [
        draw(name, scenario, folder)
        for name, scenario in results["scenarios"].items()
        if scenario["figures"]
    ]


def draw(name: str, scenario: dict[str, Any], folder: Path) -> Path:
    """The scenario's own picture, or bars."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # takes half a second, and may not be there
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7.5, 4.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _OWN.get(name, _bars)(scenario, axes)
    axes.set_title(name, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    path = folder / f"{name}.png"
    figure.savefig(path)
    return path


def _bars(scenario: dict[str, Any], axes: Axes) -> None:
    """Each figure that has something beside it, as a multiple of that; without any, the values."""
    compared = [figure for figure in scenario["figures"] if figure["ratio"] is not None]
    shown = compared or scenario["figures"]
    places = range(len(shown), 0, -1)
    axes.barh(
        list(places),
        [figure["ratio"] if compared else figure["value"] for figure in shown],
        color=_OURS,
        height=0.6,
    )
    axes.set_yticks(
        list(places),
        [
            f"{figure['case']}\nbeside {figure['against']}" if compared else figure["case"]
            for figure in shown
        ],
    )
    for place, figure in zip(places, shown, strict=True):
        label = f" {number(figure['value'])} {figure['unit']}"
        axes.text(0, place, label, va="center", color="white", fontsize=8)
    axes.set_ylim(0.4, max(4, len(shown)) + 0.6)
    if compared:
        axes.axvline(1, color=_BESIDE, linestyle="--")
        axes.set_xlabel("a multiple of what is beside it")


def _paced(scenario: dict[str, Any], axes: Axes) -> None:
    for flush, colour in ((False, _OURS), (True, "#ea580c")):
        points = [point for point in scenario["details"]["points"] if point["flush"] is flush]
        if points:
            words = "1 ms flush" if flush else "plain commits"
            rates = [f"{point['rate']:,}" for point in points]
            axes.plot(
                rates,
                [point["p50_ms"] for point in points],
                "o-",
                color=colour,
                label=f"p50, {words}",
            )
            axes.plot(
                rates,
                [point["p99_ms"] for point in points],
                "o:",
                color=colour,
                label=f"p99, {words}",
            )
            axes.axhline(
                points[0]["floor_p50_ms"],
                color=colour,
                alpha=0.35,
                label=f"idle floor p50, {words}",
            )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("single-row INSERTs a second")
    axes.set_ylabel("from INSERT to handler, ms")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _horizon(scenario: dict[str, Any], axes: Axes) -> None:
    for (name, rates), colour in zip(
        scenario["details"]["rates"].items(), (_OURS, _BESIDE), strict=False
    ):
        jobs = [scenario["details"]["jobs"] * (part + 1) / len(rates) for part in range(len(rates))]
        axes.plot(jobs, rates, "o-", color=colour, label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("jobs done behind the pinned horizon")
    axes.set_ylabel("jobs a second")
    axes.legend()


def _producers(scenario: dict[str, Any], axes: Axes) -> None:
    points = scenario["details"]["points"]
    kinds = (
        ("no_trigger", "no trigger", "#d6d3d1"),
        ("ours", "hybrid_runner", _OURS),
        ("notify", "NOTIFY at every insert", "#78716c"),
    )
    for offset, (kind, words, colour) in enumerate(kinds):
        axes.bar(
            [place + 0.27 * (offset - 1) for place in range(len(points))],
            [p[kind] for p in points],
            0.25,
            label=words,
            color=colour,
        )
    labels = [
        f"{point['clients']} clients{', 1 ms flush' if point['flush'] else ''}" for point in points
    ]
    axes.set_xticks(range(len(points)), labels, fontsize=8)
    axes.set_ylabel("single-row INSERTs a second")
    axes.legend(fontsize=8)


_OWN: dict[str, Callable[[dict[str, Any], Axes], None]] = {
    "paced": _paced,
    "horizon": _horizon,
    "producers": _producers,
}
