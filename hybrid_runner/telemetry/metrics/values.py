"""The values of all instruments at one moment: they can be merged over processes, and sent from one
to another as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hybrid_runner.telemetry.metrics.instrument import Instrument, Kind, Merge
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS, NAMED

Labels = tuple[str, ...]
"""Label values, in the order of the instrument's labels."""


class HistogramValue(NamedTuple):
    """One series of a histogram: how many values in each bucket (the last one has no upper bound),
    and the sum of the values.
    """

    counts: list[int]
    sum: float


Value = float | HistogramValue
MetricValues = Mapping[str, Mapping[Labels, Value]]
"""Instrument → labels → value."""


def merged(parts: Iterable[MetricValues]) -> MetricValues:
    """The values of several processes as those of one."""
    whole: dict[str, dict[Labels, Value]] = {}
    for part in parts:
        for name, series in part.items():
            ours = whole.setdefault(name, {})
            instrument = NAMED[name]
            for labels, value in series.items():
                ours[labels] = _both(instrument, ours[labels], value) if labels in ours else value
    return whole


def lasting(values: MetricValues) -> MetricValues:
    """The values that stay true once the process is gone: all but the gauges."""
    return {name: series for name, series in values.items() if NAMED[name].kind is not Kind.GAUGE}


def packed(values: MetricValues) -> dict[str, list[list[Any]]]:
    """Values as JSON can hold them."""
    return {
        name: [
            [labels, [*value] if isinstance(value, HistogramValue) else value]
            for labels, value in series.items()
        ]
        for name, series in values.items()
    }


def unpacked(plain: Mapping[str, Iterable[Any]]) -> MetricValues:
    """The reverse of `packed`. Instruments that only another version knows are left out."""
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
