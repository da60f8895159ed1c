"""How metric values are counted, merged, sent and written."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import orjson

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.events import BatchSettled, LookMade
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Requeued, Settlement
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.counters import Counters
from hybrid_runner.telemetry.metrics.exposition import as_text
from hybrid_runner.telemetry.metrics.instrument import MOST_SERIES, Kind
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from hybrid_runner.telemetry.metrics.series import Counter, Histogram
from hybrid_runner.telemetry.metrics.values import (
    HistogramValue,
    MetricValues,
    lasting,
    merged,
    packed,
    unpacked,
)
from tests.support.scraping import parsed

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def claim(
    *, late: float = 0.0, kind: str = "note", began: float = 10.0, ended: float = 10.5
) -> Claim:
    due = NOW - timedelta(seconds=late)
    return Claim(
        1,
        "default",
        kind,
        5,
        "{}",
        None,
        None,
        due,
        5,
        None,
        None,
        None,
        1,
        7,
        NOW,
        began=began,
        ended=ended,
    )


def test_each_instrument_is_named_as_prometheus_wants_it_and_bounded() -> None:
    for instrument in INSTRUMENTS:
        assert instrument.name.startswith("hybrid_runner_")
        assert instrument.name.endswith("_total") == (instrument.kind is Kind.COUNTER)
        assert (instrument.unit == "s") == instrument.name.endswith("_seconds")
        assert instrument.help.endswith(".")
        assert bool(instrument.bounds) == (instrument.kind is Kind.HISTOGRAM)
        assert list(instrument.bounds) == sorted(set(instrument.bounds))
        assert set(instrument.labels) <= {
            "queue",
            "kind",
            "outcome",
            "way",
            "state",
            "table",
            "what",
            "mode",
            "field",
            "breaker",
            "budget",
            "phase",
            "reconciler",
            "reason",
            "schedule",
            "version",
        }
    assert len({instrument.name for instrument in INSTRUMENTS}) == len(INSTRUMENTS)


def test_what_is_beyond_the_most_series_is_counted_together() -> None:
    counter, histogram = Counter(table.RETRIES), Histogram(table.RUN_DURATION)
    for number in range(MOST_SERIES + 50):
        counter.add(("default", f"kind{number}"))
        histogram.series((f"kind{number}", "completed")).add(0.1)
    assert len(counter.read()) == len(histogram.read()) == MOST_SERIES + 1
    assert counter.read()["(other)", "(other)"] == 50
    assert sum(histogram.read()["(other)", "(other)"].counts) == 50
    counter.add(("default", "kind0"))
    assert counter.read()["default", "kind0"] == 2


def test_a_value_on_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram(table.CLAIM_BATCH)
    histogram.series(("q",)).add_all([0, 1, 1.5, 500, 501])
    assert histogram.read()["q",] == HistogramValue([1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1], 1003.5)


def test_a_copy_does_not_change_any_more() -> None:
    histogram = Histogram(table.CLAIM_BATCH)
    histogram.series(("q",)).add(1)
    copy = histogram.read()
    histogram.series(("q",)).add(1)
    assert sum(copy["q",].counts) == 1


def test_a_look_counts_its_jobs_once_and_by_the_way_that_found_them() -> None:
    """A1 A10"""
    counts = Counters(["default"], [])
    counts.on_look(
        LookMade(
            "default",
            "ring",
            10,
            [claim(late=0.002), claim(late=90)],
            swept=False,
            began=1.0,
            ended=1.003,
        )
    )
    counts.on_look(LookMade("default", "sweep", 10, [], swept=True, began=2.0, ended=2.2))
    values = counts.metric_values()
    assert values[table.LOOKS.name] == {
        ("default", "ring", "found"): 1,
        ("default", "sweep", "empty"): 1,
    }
    pickup = values[table.PICKUP.name]["default", "ring"]
    assert isinstance(pickup, HistogramValue)
    assert sum(pickup.counts) == 2
    assert math.isclose(pickup.sum, 90.002)
    assert _seen(values, table.CLAIM_DURATION.name) == _seen(values, table.CLAIM_BATCH.name) == 2
    assert _seen(values, table.SWEEP_DURATION.name) == 1


def test_an_outcome_counts_once_and_what_never_began_has_no_duration() -> None:
    """A10"""
    counts = Counters(["default"], [])
    settled: list[Settlement] = [
        Finished(claim(), State.COMPLETED),
        Finished(claim(kind="other"), State.FAILED),
        Requeued(claim(), timedelta(0), charged=True),
        Requeued(claim(), timedelta(0), charged=False, why="snooze"),
        Requeued(claim(began=0.0, ended=0.0), timedelta(0), charged=False, why="release"),
    ]
    counts.on_settled(
        BatchSettled(settled, [Finished(claim(), State.COMPLETED)], began=10.5, ended=10.75)
    )
    values = counts.metric_values()
    ran = values[table.RUN_DURATION.name]
    assert sorted(ran) == [
        ("note", "completed"),
        ("note", "retry"),
        ("note", "snooze"),
        ("other", "failed"),
    ]
    assert _seen(values, table.RUN_DURATION.name) == _seen(values, table.SETTLE_LAG.name) == 4
    assert (
        values[table.RETRIES.name]
        == values[table.SNOOZES.name]
        == values[table.RELEASES.name]
        == {("default", "note"): 1}
    )
    assert values[table.STALE_SETTLES.name] == {("default",): 1}
    batch = values[table.SETTLE_BATCH.name][()]
    assert isinstance(batch, HistogramValue)
    assert batch.sum == 6


def test_processes_add_up_as_the_table_says() -> None:
    one: MetricValues = {
        table.POLLS.name: {("q",): 3, ("r",): 1},
        table.HEARING.name: {(): 1},
        table.CONSECUTIVE_ERRORS.name: {("q",): 7},
        table.RUNNING.name: {("q",): 2},
        table.CLAIM_BATCH.name: {("q",): HistogramValue([1, 2], 3.0)},
    }
    other: MetricValues = {
        table.POLLS.name: {("q",): 4},
        table.HEARING.name: {(): 0},
        table.CONSECUTIVE_ERRORS.name: {("q",): 1},
        table.RUNNING.name: {("q",): 5},
        table.CLAIM_BATCH.name: {("q",): HistogramValue([1, 0], 0.5)},
    }
    assert merged([one, other]) == {
        table.POLLS.name: {("q",): 7, ("r",): 1},
        table.HEARING.name: {(): 0},
        table.CONSECUTIVE_ERRORS.name: {("q",): 7},
        table.RUNNING.name: {("q",): 7},
        table.CLAIM_BATCH.name: {("q",): HistogramValue([2, 2], 3.5)},
    }
    assert lasting(one).keys() == {table.POLLS.name, table.CLAIM_BATCH.name}


def test_metrics_survive_a_message_and_another_versions_are_left_out() -> None:
    counts = Counters(["default"], [("default", "note")])
    counts.on_look(LookMade("default", "ring", 10, [claim()], swept=False, began=1.0, ended=1.003))
    values = counts.metric_values()
    plain = orjson.loads(orjson.dumps(packed(values)))
    assert unpacked(plain | {"hybrid_runner_of_tomorrow": [[["q"], 1]]}) == values


def test_labels_and_odd_numbers_are_written_as_a_scraper_reads_them() -> None:
    label = 'a "quoted" \\ back\nslash, and {braces}'
    text = as_text({table.POLLS.name: {(label,): 3}, table.HORIZON_AGE.name: {(): math.inf}})
    families = parsed(text)
    assert families.keys() == {instrument.name for instrument in INSTRUMENTS}
    assert families[table.POLLS.name].of(queue=label) == 3
    assert families[table.HORIZON_AGE.name].of() == math.inf


def _seen(values: MetricValues, name: str) -> int:
    return sum(
        sum(value.counts) for value in values[name].values() if isinstance(value, HistogramValue)
    )
