"""What the declaration of a metric is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

MOST_SERIES: Final = 1000
OTHER: Final = "(other)"
"""The value of every label for combinations beyond MOST_SERIES."""


class Kind(Enum):
    """The type of a metric, by its name in Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Merge(Enum):
    """How the values of several processes become one."""

    SUM = "sum"
    HIGHEST = "highest"
    LOWEST = "lowest"


@dataclass(frozen=True, slots=True)
class Instrument:
    """The declaration of one metric."""

    name: str
    kind: Kind
    unit: str
    """UCUM, as OTLP wants it: s, or a {thing}. Without a unit "", not 1: collectors add `_ratio` to
    the name then.
    """
    labels: tuple[str, ...]
    help: str
    requirement: str
    bounds: tuple[float, ...] = ()
    merge: Merge = Merge.SUM


FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds in seconds for what usually takes milliseconds."""
LONG: Final = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
)
"""Bounds in seconds for handlers, and for jobs that wait."""
SIZES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Bounds for the number of jobs in a batch."""


def counter(
    name: str, unit: str, labels: tuple[str, ...], text: str, requirement: str
) -> Instrument:
    return Instrument(f"hybrid_runner_{name}_total", Kind.COUNTER, unit, labels, text, requirement)


def gauge(
    name: str,
    unit: str,
    labels: tuple[str, ...],
    text: str,
    requirement: str,
    merge: Merge = Merge.SUM,
) -> Instrument:
    return Instrument(
        f"hybrid_runner_{name}", Kind.GAUGE, unit, labels, text, requirement, merge=merge
    )


def histogram(
    name: str,
    unit: str,
    labels: tuple[str, ...],
    text: str,
    requirement: str,
    bounds: tuple[float, ...],
) -> Instrument:
    return Instrument(
        f"hybrid_runner_{name}", Kind.HISTOGRAM, unit, labels, text, requirement, bounds
    )
