"""What a scenario returns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hybrid_runner.display import percentile

Tell = Callable[[float, str], None]
"""Takes the share that is done, and what comes next."""


@dataclass(frozen=True)
class Figure:
    """One measured number, and beside it what it is compared with."""

    case: str
    unit: str
    value: float
    against: str | None = None
    """Name of the reference; None: there is nothing to compare with."""
    reference: float | None = None

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of the reference."""
        return self.value / self.reference if self.reference else None


@dataclass(frozen=True)
class Result:
    """One scenario's figures; `details` has what the pictures need, and what explains a figure."""

    figures: tuple[Figure, ...]
    details: dict[str, Any] = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "figures": [asdict(figure) | {"ratio": figure.ratio} for figure in self.figures],
            "details": self.details,
        }


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def p50_p99(microseconds: Sequence[float]) -> tuple[float, float]:
    """Both percentiles, in milliseconds."""
    return percentile(microseconds, 0.5) / 1000, percentile(microseconds, 0.99) / 1000
