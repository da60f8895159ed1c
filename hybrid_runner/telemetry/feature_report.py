"""What a feature that stands on jobs shows of itself in a worker that runs its jobs."""

from __future__ import annotations

from hybrid_runner.telemetry.metrics.values import MetricValues


class FeatureReport:
    """Made by the feature, put into `Registry.reports`, read by the worker from any thread."""

    def metric_values(self) -> MetricValues:
        """What it counted."""
        return {}
