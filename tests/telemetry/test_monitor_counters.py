"""What rounds of monitored services count, and where it is shown."""

from __future__ import annotations

from typing import get_args

from hybrid_runner import Runner
from hybrid_runner.model.monitors import EventKind, PollFailure
from hybrid_runner.telemetry.metrics import monitor_instruments as table
from hybrid_runner.telemetry.metrics.exposition import as_text
from hybrid_runner.telemetry.metrics.monitor_counters import PHASES, MonitorCounters
from hybrid_runner.telemetry.metrics.values import HistogramValue
from tests.support.working import runner, working


def test_every_series_begins_at_zero() -> None:
    values = MonitorCounters().metric_values()
    outcomes = {labels[0] for labels in values[table.MONITOR_POLLS.name]}
    assert outcomes == {"ok", "missed", *get_args(PollFailure)}
    kinds = {labels[0] for labels in values[table.MONITOR_EVENTS.name]}
    assert kinds == set(get_args(EventKind))
    assert {*values[table.MONITOR_POLLS.name].values()} == {0}
    assert values[table.MONITOR_COALESCED.name] == {(): 0}


def test_what_is_counted_is_shown() -> None:
    counters = MonitorCounters()
    counters.count_poll("ok")
    counters.count_poll("timeout")
    counters.count_poll("timeout")
    counters.count_request({"resolve": 0.001, "body": -0.5, "made up": 1.0})
    counters.count_host_wait(0.2)
    counters.count_coalesced(3)
    counters.count_event("service:down")
    counters.count_event("status:change", 4)
    values = counters.metric_values()
    assert values[table.MONITOR_POLLS.name][("timeout",)] == 2
    assert values[table.MONITOR_COALESCED.name] == {(): 3}
    assert values[table.MONITOR_EVENTS.name][("status:change",)] == 4
    durations = values[table.MONITOR_POLL_DURATION.name]
    assert set(durations) == {("resolve",), ("body",), ("(other)",)}
    waits = values[table.MONITOR_HOST_WAIT.name][()]
    assert isinstance(waits, HistogramValue)
    assert (sum(waits.counts), waits.sum) == (1, 0.2)
    assert 'hybrid_runner_monitor_polls_total{outcome="timeout"} 2' in as_text(values)


def test_phases_are_a_small_set() -> None:
    counters = MonitorCounters()
    for number in range(50):
        counters.count_request({str(number): 0.1, **dict.fromkeys(PHASES, 0.1)})
    assert len(counters.metric_values()[table.MONITOR_POLL_DURATION.name]) == len(PHASES) + 1


def _an_app(dsn: str) -> Runner:
    app = runner(dsn)

    @app.job("work")
    async def work(payload: dict[str, int]) -> None:
        pass

    return app


async def test_a_worker_shows_what_features_count_and_nothing_without_them(dsn: str) -> None:
    app = _an_app(dsn)
    async with working(app) as worker:
        assert not [name for name in worker.status().metric_values if "monitor" in name]
    app = _an_app(dsn)
    counters = MonitorCounters()
    app.registry.reports.append(counters)
    async with working(app) as worker:
        counters.count_poll("dns")
        values = worker.status().metric_values
        assert values[table.MONITOR_POLLS.name][("dns",)] == 1
        assert table.MONITOR_SERVICES.name not in values
