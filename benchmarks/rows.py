"""The contest's results as rows of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybrid_runner.bench.table import described, number

HEADERS = ("case", "runner", "measured", "", "ours is")
OURS = "hybrid_runner"
Row = tuple[str, str, str, str, str]


def rows_of(results: dict[str, Any]) -> list[Row]:
    """One row for each runner in each case. The last cell compares hybrid_runner with it; more than
    1 is better.
    """
    rows: list[Row] = []
    for name, scenario in results["scenarios"].items():
        cases = {"": scenario} if name in {"drain", "pickup"} else scenario
        for case, contestants in cases.items():
            rows += _rows_of_case(f"{name} {case}".strip(), contestants)
    return rows


def markdown(results: dict[str, Any]) -> str:
    """The results as a Markdown table, and below it where they were measured."""
    lines = [HEADERS, ("---",) * len(HEADERS), *rows_of(results)]
    return (
        "".join(f"| {' | '.join(line)} |\n" for line in lines)
        + f"\n{described(results['about'])}\n"
    )


def _rows_of_case(case: str, contestants: dict[str, dict[str, Any]]) -> Iterator[Row]:
    ours = contestants.get(OURS, {})
    for runner, found in contestants.items():
        if "error" in found:
            yield case, runner, "not measured", found["error"], ""
        elif "p50_ms" in found:
            p50, p99 = (
                f"{number(found[key])} ms" if found[key] is not None else "-"
                for key in ("p50_ms", "p99_ms")
            )
            yield (
                case,
                runner,
                f"p50 {p50}, p99 {p99}",
                _load(found),
                _better(found.get("p50_ms"), ours.get("p50_ms")),
            )
        else:
            yield (
                case,
                runner,
                f"{number(found['rate'])}/s",
                "",
                _better(ours.get("rate"), found["rate"]),
            )


def _load(found: dict[str, Any]) -> str:
    """The figures of a steady rate."""
    if "reached" not in found:
        return ""
    late = "" if found["handled"] == 1 else f", {found['handled']:.0%} handled"
    cpu = (
        ""
        if found["worker_cpu"] is None
        else f", {number(found['worker_cpu'])} + {number(found['server_cpu'])} cores"
    )
    return f"{number(found['reached'])}/s{late}{cpu}"


def _better(large: float | None, small: float | None) -> str:
    return "" if not large or not small else f"{large / small:.1f}x"
