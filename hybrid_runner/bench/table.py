"""Results as rows of text: for a terminal, and for a page."""

from __future__ import annotations

from typing import Any

HEADERS = ("scenario", "case", "measured", "beside it", "ratio")


def rows_of(results: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """A row for each figure; a scenario that failed has one that says why."""
    rows = []
    for name, scenario in results["scenarios"].items():
        rows += [(name, *_cells(figure)) for figure in scenario["figures"]]
        if error := scenario.get("error"):
            rows.append((name, "not measured", "", error, ""))
    return rows


def markdown(results: dict[str, Any]) -> str:
    """The results as a Markdown table, and below it where they were measured."""
    lines = [HEADERS, ("---",) * len(HEADERS), *rows_of(results)]
    table = "".join(
        f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines
    )
    return f"{table}\n{described(results['about'])}\n"


def described(about: dict[str, Any]) -> str:
    """Where the figures come from, in one sentence."""
    return (
        f"Measured {about['at'][:10]} with hybrid-runner {about['version']}, "
        f"PostgreSQL {about['postgres']}, fsync {about['fsync']}, "
        f"Python {about['python']}, {about['cores']} cores ({about['processor']})."
    )


def number(value: float) -> str:
    """The number with as many digits as mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if 0 < abs(value) < 0.01:
        return f"{value:.1g}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cells(figure: dict[str, Any]) -> tuple[str, str, str, str]:
    unit = figure["unit"]
    beside = (
        f"{number(figure['reference'])} {unit} ({figure['against']})" if figure["against"] else ""
    )
    ratio = "" if figure["ratio"] is None else f"{figure['ratio']:.2f}"
    return figure["case"], f"{number(figure['value'])} {unit}", beside, ratio
