"""Results as text: for a terminal, for a page, and for the comparison with others."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import page, rows
from hybrid_runner.bench import table
from hybrid_runner.bench.results import Figure, Result, p50_p99

ABOUT = {
    "at": "2030-01-31T08:00:00+00:00",
    "version": "1.0",
    "postgres": "18.6",
    "fsync": "on",
    "python": "3.11.7",
    "cores": 2,
    "processor": "x86_64",
}
BESIDE = Result(
    (Figure("worker", "jobs/s", 12_345.6, "bare loop", 24_691.2), Figure("p50", "ms", 1.234))
)
RESULTS: dict[str, Any] = {
    "about": ABOUT,
    "scenarios": {
        "drain": BESIDE.as_document(),
        "fleet": {"figures": [], "details": {}, "error": "no room"},
    },
}
PEERS: dict[str, Any] = {
    "about": ABOUT,
    "scenarios": {
        "drain": {
            "hybrid_runner": {"rate": 3000.0},
            "other": {"rate": 1000.0},
            "broken": {"error": "it ended"},
        },
        "paced": {
            "100/s": {
                "hybrid_runner": {
                    "p50_ms": 1.0,
                    "p99_ms": 2.0,
                    "reached": 100.0,
                    "handled": 1.0,
                    "worker_cpu": 0.1,
                    "server_cpu": 0.2,
                },
                "other": {
                    "p50_ms": 5.0,
                    "p99_ms": 9.0,
                    "reached": 50.0,
                    "handled": 0.5,
                    "worker_cpu": None,
                    "server_cpu": None,
                },
            }
        },
    },
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.00216, "0.002"),
        (0.5, "0.50"),
        (9.876, "9.88"),
        (12.34, "12.3"),
        (123.4, "123"),
        (12_345.6, "12,346"),
    ],
)
def test_numbers_have_the_digits_that_mean_something(value: float, text: str) -> None:
    assert table.number(value) == text


def test_each_figure_is_a_row_and_a_failure_says_why() -> None:
    assert table.rows_of(RESULTS) == [
        ("drain", "worker", "12,346 jobs/s", "24,691 jobs/s (bare loop)", "0.50"),
        ("drain", "p50", "1.23 ms", "", ""),
        ("fleet", "not measured", "", "no room", ""),
    ]


def test_the_page_has_them_as_a_table() -> None:
    lines = table.markdown(RESULTS).splitlines()
    assert lines[:3] == [
        "| scenario | case | measured | beside it | ratio |",
        "| --- | --- | --- | --- | --- |",
        "| drain | worker | 12,346 jobs/s | 24,691 jobs/s (bare loop) | 0.50 |",
    ]
    assert lines[-1].startswith(
        "Measured 2030-01-31 with hybrid-runner 1.0, PostgreSQL 18.6, fsync on, Python 3.11.7, 2"
        " cores"
    )


def test_a_contestant_is_compared_with_ours_and_more_is_better() -> None:
    assert rows.rows_of(PEERS) == [
        ("drain", "hybrid_runner", "3,000/s", "", "1.0x"),
        ("drain", "other", "1,000/s", "", "3.0x"),
        ("drain", "broken", "not measured", "it ended", ""),
        (
            "paced 100/s",
            "hybrid_runner",
            "p50 1.00 ms, p99 2.00 ms",
            "100/s, 0.10 + 0.20 cores",
            "1.0x",
        ),
        ("paced 100/s", "other", "p50 5.00 ms, p99 9.00 ms", "50.0/s, 50% handled", "5.0x"),
    ]


def test_a_block_of_the_page_is_written_anew_and_all_else_stays() -> None:
    text = (
        "before\n<!-- results: results -->\nold\n<!-- end -->\nbetween\n<!-- results: peers"
        " -->\nkept\n<!-- end -->\nafter\n"
    )
    once = page.filled(text, {"results": RESULTS}, ["drain"])
    assert "old" not in once
    assert "![drain](pictures/drain.png)" in once
    assert "pictures/fleet.png" not in once
    assert once.startswith("before\n")
    assert once.endswith("between\n<!-- results: peers -->\nkept\n<!-- end -->\nafter\n")
    assert page.filled(once, {"results": RESULTS}, ["drain"]) == once


def test_both_blocks_are_on_the_page() -> None:
    text = (page.DOCS / "performance.md").read_text(encoding="utf-8")
    assert [found[2] for found in page._BLOCK.finditer(text)] == ["results", "peers"]


def test_percentiles_are_values_that_were_measured() -> None:
    assert p50_p99([1000, 3000, 2000]) == (2.0, 3.0)
    assert p50_p99([5000]) == (5.0, 5.0)
