from __future__ import annotations

import re

from hybrid_runner.telemetry.metrics.instrument import Kind
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from tests.docs.metrics_page import PAGE, page

SUFFIXES = r"(_bucket|_sum|_count)?"


def test_the_metrics_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.docs.metrics_page"
    )


def test_every_figure_of_the_page_is_declared() -> None:
    """A name in an example that nobody exports would be a question without an answer."""
    patterns = [i.name + (SUFFIXES if i.kind is Kind.HISTOGRAM else "") for i in INSTRUMENTS]
    named = set(re.findall(r"hybrid_runner_[a-z_]+\b(?!\*)(?!/)", page())) - {
        "hybrid_runner_queue_"
    }
    assert [
        name
        for name in sorted(named)
        if not any(re.fullmatch(pattern, name) for pattern in patterns)
    ] == []
    assert len(named) >= len(INSTRUMENTS)
