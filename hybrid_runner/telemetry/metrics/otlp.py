"""Metric values as the OpenTelemetry SDK's own types, which its exporters take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from hybrid_runner.telemetry.metrics.instrument import Instrument, Kind
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from hybrid_runner.telemetry.metrics.values import HistogramValue, Labels, MetricValues, Value
from hybrid_runner.version import VERSION

_UNKNOWN: Any = None  # declared as a number; None is left out of the message


class Translator:
    """Translates values whose counters began at `started_at`."""

    def __init__(self, resource: Resource, started_at: int) -> None:
        self._resource = resource
        self._started_at = started_at

    def translate(self, values: MetricValues, at: int) -> MetricsData:
        """All instruments that have a series; times are nanoseconds since 1970."""
        metrics = [
            self._metric(instrument, series, at)
            for instrument in INSTRUMENTS
            if (series := values.get(instrument.name))
        ]
        scope = ScopeMetrics(InstrumentationScope("hybrid_runner", VERSION), metrics, schema_url="")
        return MetricsData([ResourceMetrics(self._resource, [scope], schema_url="")])

    def _metric(self, instrument: Instrument, series: Mapping[Labels, Value], at: int) -> Metric:
        points: list[Any] = [
            self._point(instrument, labels, value, at) for labels, value in series.items()
        ]
        return Metric(instrument.name, instrument.help, instrument.unit, _data(instrument, points))

    def _point(
        self, instrument: Instrument, labels: Labels, value: Value, at: int
    ) -> NumberDataPoint | HistogramDataPoint:
        attributes = dict(zip(instrument.labels, labels, strict=True))
        if isinstance(value, HistogramValue):
            return HistogramDataPoint(
                attributes,
                self._started_at,
                at,
                sum(value.counts),
                value.sum,
                value.counts,
                instrument.bounds,
                min=_UNKNOWN,
                max=_UNKNOWN,
            )
        return NumberDataPoint(attributes, self._started_at, at, value)


def _data(instrument: Instrument, points: list[Any]) -> Sum | Gauge | Histogram:
    match instrument.kind:
        case Kind.COUNTER:
            return Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        case Kind.GAUGE:
            return Gauge(points)
        case Kind.HISTOGRAM:
            return Histogram(points, AggregationTemporality.CUMULATIVE)
