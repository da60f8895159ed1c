"""Counters and histograms that cost a fraction of a microsecond: plain dicts and lists.

Each is written by one thread. Others copy it without a lock of ours: single operations on a dict or
list are atomic under the interpreter's lock, so a copy may lack what happens meanwhile, but is
never broken.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from hybrid_runner.telemetry.metrics.instrument import MOST_SERIES, OTHER, Instrument
from hybrid_runner.telemetry.metrics.values import HistogramValue, Labels


class Counter:
    """All series of one counter."""

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument
        self._values: dict[Labels, float] = {}
        self._others = (OTHER,) * len(instrument.labels)

    def add(self, labels: Labels, by: float = 1) -> None:
        """Add to a series; adding 0 creates it."""
        values = self._values
        if labels not in values and len(values) >= MOST_SERIES:
            labels = self._others
        values[labels] = values.get(labels, 0) + by

    def read(self) -> dict[Labels, float]:
        """A copy of all series; from any thread."""
        return self._values.copy()


class HistogramSeries:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def add_all(self, values: Iterable[float]) -> None:
        """Add several values: sorting them once takes a third of the time."""
        ordered, counts, done = sorted(values), self.counts, 0
        for bucket, bound in enumerate(self._bounds):
            if done == len(ordered):
                break
            end = bisect_right(ordered, bound, done)
            counts[bucket] += end - done
            done = end
        counts[-1] += len(ordered) - done
        self.sum += sum(ordered)


class Histogram:
    """All series of one histogram."""

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument
        self._series: dict[Labels, HistogramSeries] = {}
        self._others = (OTHER,) * len(instrument.labels)

    def series(self, labels: Labels) -> HistogramSeries:
        """The series with these labels; created if there is none."""
        series = self._series.get(labels)
        return self._new(labels) if series is None else series

    def read(self) -> dict[Labels, HistogramValue]:
        """A copy of all series; from any thread."""
        return {
            labels: HistogramValue(series.counts.copy(), series.sum)
            for labels, series in self._series.copy().items()
        }

    def _new(self, labels: Labels) -> HistogramSeries:
        if len(self._series) >= MOST_SERIES:
            labels = self._others
        return self._series.setdefault(labels, HistogramSeries(self.instrument.bounds))
