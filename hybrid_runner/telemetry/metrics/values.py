"""The values of instruments at one moment: plain values, that can be added up, and sent from one
process to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS, NAMED, Instrument, Kind, Merge

Labels = tuple[str, ...]
"""Values, in the order of the instrument's labels."""


class HistogramValue(NamedTuple):
    """What a histogram has seen: how many below each bound (and above the last, at the end), and
    their sum.
    """

    counts: list[int]
    sum: float


Value = float | HistogramValue
MetricValues = Mapping[str, Mapping[Labels, Value]]
"""Instrument → labels → value."""


def merged(parts: Iterable[MetricValues]) -> MetricValues:
    """Several processes as one."""
    whole: dict[str, dict[Labels, Value]] = {}
    for part in parts:
        for name, series in part.items():
            ours = whole.setdefault(name, {})
            instrument = NAMED[name]
            for labels, value in series.items():
                ours[labels] = _both(instrument, ours[labels], value) if labels in ours else value
    return whole


def lasting(figures: MetricValues) -> MetricValues:
    """What stays true once its process is gone: all but the gauges."""
    return {name: series for name, series in figures.items() if NAMED[name].kind is not Kind.GAUGE}


def packed(figures: MetricValues) -> dict[str, list[list[Any]]]:
    """As JSON knows it."""
    return {
        name: [
            [labels, [*value] if isinstance(value, HistogramValue) else value]
            for labels, value in series.items()
        ]
        for name, series in figures.items()
    }


def unpacked(plain: Mapping[str, Iterable[Any]]) -> MetricValues:
    """The reverse; instruments that are not known here (another version's) are left out."""
    return {
        instrument.name: {
            tuple(labels): _value(instrument, value) for labels, value in plain[instrument.name]
        }
        for instrument in INSTRUMENTS
        if instrument.name in plain
    }


def _value(instrument: Instrument, value: Any) -> Value:
    return HistogramValue(*value) if instrument.kind is Kind.HISTOGRAM else value


def _both(instrument: Instrument, one: Value, other: Value) -> Value:
    if isinstance(one, HistogramValue):
        assert isinstance(other, HistogramValue)  # noqa: S101  # of one instrument
        return HistogramValue(
            [a + b for a, b in zip(one.counts, other.counts, strict=True)], one.sum + other.sum
        )
    assert not isinstance(other, HistogramValue)  # noqa: S101  # of one instrument
    match instrument.merge:
        case Merge.HIGHEST:
            return max(one, other)
        case Merge.LOWEST:
            return min(one, other)
        case Merge.SUM:
            return one + other
