"""Counts what happens in one worker: an observer of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never, get_args

from hybrid_runner.model.events import BatchSettled, LookMade, Observer
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, RequeueReason, Settlement, word_of
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics import row_instruments
from hybrid_runner.telemetry.metrics.instrument import Instrument
from hybrid_runner.telemetry.metrics.series import Counter, Histogram
from hybrid_runner.telemetry.metrics.values import Labels, MetricValues, merged
from hybrid_runner.telemetry.metrics.waiting_counters import WaitingCounters

_FAILED = State.FAILED.value
_RESCUED = ("retry", _FAILED, State.CANCELLED.value)


class Counters(Observer):
    """Written in the worker's loop, `on_rescued` in the heartbeat's thread; read from any thread.

    Series whose labels are known at the start begin at 0: rates need that.
    """

    def __init__(
        self,
        queues: Iterable[str],
        kinds: Iterable[tuple[str, str]],
        spans_dropped: Callable[[], int] = lambda: 0,
    ) -> None:
        self._spans_dropped = spans_dropped
        self._looks = Counter(table.LOOKS)
        self._claim_duration = Histogram(table.CLAIM_DURATION)
        self._claim_batch = Histogram(table.CLAIM_BATCH)
        self._sweep_duration = Histogram(table.SWEEP_DURATION)
        self._pickup = Histogram(table.PICKUP)
        self._missed = Counter(table.MISSED_RINGS)
        self._runs = Histogram(table.RUN_DURATION)
        self._requeued = {why: Counter(_instrument(why)) for why in get_args(RequeueReason)}
        self._rescues = Counter(table.RESCUES)
        self._settle_lag = Histogram(table.SETTLE_LAG)
        self._settle_duration = Histogram(table.SETTLE_DURATION)
        self._settle_batch = Histogram(table.SETTLE_BATCH)
        self._stale = Counter(table.STALE_SETTLES)
        self._rows_shown = Counter(row_instruments.ROWS_SHOWN)
        self._loop_lag = Histogram(table.LOOP_LAG)
        self.waiting = WaitingCounters()
        self._rescued = WaitingCounters()
        self._all: tuple[Counter | Histogram, ...] = tuple(
            one
            for one in (*vars(self).values(), *self._requeued.values(), *self.waiting.all)
            if isinstance(one, (Counter, Histogram))
        )
        self._start_series(queues, kinds)

    def _start_series(self, queues: Iterable[str], kinds: Iterable[tuple[str, str]]) -> None:
        for histogram in (self._settle_duration, self._settle_batch, self._loop_lag):
            histogram.series(())
        for queue in queues:
            for counter in (self._missed, self._stale):
                counter.add((queue,), 0)
            for outcome in _RESCUED:
                self._rescues.add((queue, outcome), 0)
            for histogram in (
                self._claim_duration,
                self._claim_batch,
                self._sweep_duration,
                self._settle_lag,
            ):
                histogram.series((queue,))
        for labels in kinds:
            for counter in self._requeued.values():
                counter.add(labels, 0)

    # --- events

    def on_look(self, look: LookMade) -> None:
        """Count a look and what it found."""
        queue, way, claims = (look.queue, look.way, look.claims)
        took = look.ended - look.began
        self._looks.add((queue, way, "found" if claims else "empty"))
        self._claim_duration.series((queue,)).add(took)
        self._claim_batch.series((queue,)).add(len(claims))
        if look.swept:
            self._sweep_duration.series((queue,)).add(took)
        if claims:
            at = claims[0].started_at  # one statement claims all at the same time
            self._pickup.series((queue, way)).add_all(
                [(at - claim.run_at).total_seconds() for claim in claims]
            )

    def on_settled(self, batch: BatchSettled) -> None:
        """Count the outcomes of a batch."""
        settled, ended = batch.settled, batch.ended
        self._settle_duration.series(()).add(ended - batch.began)
        self._settle_batch.series(()).add(len(settled) + len(batch.stale))
        runs, lags = defaultdict[Labels, list[float]](list), defaultdict[str, list[float]](list)
        for settlement in settled:
            claim = settlement.claim
            outcome = word_of(settlement)
            if claim.ended:  # else it was released before it began
                runs[claim.kind, outcome].append(claim.ended - claim.began)
                lags[claim.queue].append(ended - claim.ended)
            if claim.signals is not None and claim.signals.woke is not None:
                self.waiting.count_wake(claim.kind, claim.signals.woke)
            if claim.uses:
                self.waiting.count_uses(settlement, claim.uses)
            if outcome == _FAILED and isinstance(settlement, Finished):
                self.waiting.count_failure(settlement)
            elif outcome in self._requeued:
                self._requeued[outcome].add((claim.queue, claim.kind))
        for labels, seconds in runs.items():
            self._runs.series(labels).add_all(seconds)
        for queue, seconds in lags.items():
            self._settle_lag.series((queue,)).add_all(seconds)
        self._count_rows(settled)
        for settlement in batch.stale:
            self._stale.add((settlement.claim.queue,))

    def _count_rows(self, settled: Sequence[Settlement]) -> None:
        for shown in [s.claim.shown for s in settled if s.claim.shown is not None]:
            self._rows_shown.add((shown.table, shown.outcome))

    def on_rescued(self, settled: Sequence[Settlement]) -> None:
        """Count jobs whose workers died. Called in the heartbeat's thread, the only one that writes
        these counters.
        """
        for settlement in settled:
            self._rescues.add((settlement.claim.queue, word_of(settlement)))
            if isinstance(settlement, Finished):
                self._rescued.count_failure(settlement)

    def on_missed_rings(self, queue: str, count: int) -> None:
        """Count jobs that a fallback poll found although a ring was due."""
        self._missed.add((queue,), count)

    def on_loop_lag(self, seconds: float) -> None:
        """Count how late the event loop ran what it was asked to run at once."""
        self._loop_lag.series(()).add(seconds)

    # --- values

    def metric_values(self) -> MetricValues:
        """A copy of all values; from any thread."""
        values: MetricValues = {
            **{each.instrument.name: each.read() for each in self._all},
            table.SPANS_DROPPED.name: {(): self._spans_dropped()},
        }
        return merged([values, self._rescued.metric_values()])


def _instrument(why: RequeueReason) -> Instrument:
    """The counter of jobs that are put back for this reason."""
    match why:
        case "retry":
            return table.RETRIES
        case "snooze":
            return table.SNOOZES
        case "release":
            return table.RELEASES
        case _:
            assert_never(why)
