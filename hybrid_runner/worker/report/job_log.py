"""Logs what became of jobs: completed ones in a summary, any other with a line of its own, and at
debug level one line for each job.

The number of lines is limited: if very many jobs fail, the summary says how many.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, assert_never

from hybrid_runner.display import one_line
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.jsontext import decode
from hybrid_runner.model.events import BatchSettled, Observer
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Repeated, Requeued, Settlement, word_of
from hybrid_runner.telemetry.log_events import LogEvent, log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields

log = logging.getLogger("hybrid_runner.worker")

EVERY = timedelta(seconds=10)
"""Between two summaries of a queue in which jobs ended."""
MOST_LINES = 20
"""So many jobs of a queue get a line of their own between two summaries."""
FIRST_JOBS = 20
"""So many completed jobs get a line of their own after the start, if a person is watching."""
MOST_KINDS = 20
"""So many kinds are named in the line about a worker's start."""
_ORDINARY = State.COMPLETED.value
_QUEUE = attrgetter("claim.queue")
_RUNS = 1000
"""A summary's percentiles are those of the last so many runs."""
_IN_WORDS = {"retry": "to be tried again", "snooze": "snoozed", "release": "released"}
"""How summaries name jobs that were put back; others are named by their final state."""


def tell_start(
    worker_id: str, queues: Mapping[str, int], registry: Registry, thread_slots: int
) -> None:
    """Log the worker's queues and kinds, and how many sync handlers run at a time."""
    described = ", ".join(f"{queue} ({slots} slots)" for queue, slots in queues.items())
    kinds = [kind.name for kind in registry]
    log.info(
        "worker %s has started: queues %s; kinds %s",
        worker_id,
        described,
        _some(kinds),
        extra=log_event(
            "worker.started", worker=worker_id, queues=dict(queues), kinds=kinds[:MOST_KINDS]
        ),
    )
    if in_threads := [kind.name for kind in registry if kind.executor == "thread"]:
        log.info(
            "sync handlers share %d threads (thread_slots): %s",
            thread_slots,
            _some(in_threads),
            extra=log_event("worker.threads", kinds=in_threads[:MOST_KINDS], threads=thread_slots),
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_KINDS} more" if len(names) > MOST_KINDS else ""
    return ", ".join(names[:MOST_KINDS]) + more


class _Record:
    """What happened in one queue since the last summary."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.runs: deque[float] = deque(maxlen=_RUNS)
        self.lines = self.held_back = 0
        self.level = logging.INFO
        """The highest level among the lines that were held back."""


class JobLog(Observer):
    """`summarise` is called from time to time, and at the end.

    With `show_first`, the first completed jobs have lines of their own too: whoever starts a worker
    in a terminal and enqueues a job sees that it ran.
    """

    def __init__(self, *, show_first: bool = False) -> None:
        self._first_lines = FIRST_JOBS if show_first else 0
        self._records: dict[str, _Record] = {}
        self.since = time.monotonic()
        """When the last summary was made."""

    def on_settled(self, batch: BatchSettled) -> None:
        log_all = log.isEnabledFor(logging.DEBUG)
        for queue, settled in groupby(batch.settled, _QUEUE):
            record = self._records.get(queue) or self._records.setdefault(queue, _Record())
            of_queue = list(settled)
            words = list(map(word_of, of_queue))
            record.counts.update(words)
            record.runs += [
                s.claim.ended - s.claim.began for s in of_queue[-_RUNS:] if s.claim.began
            ]
            if log_all or self._first_lines or words.count(_ORDINARY) < len(words):
                for settlement, word in zip(of_queue, words, strict=True):
                    if log_all or word != _ORDINARY:
                        self._log_line(record, settlement, bounded=not log_all)
                    elif self._first_lines:
                        self._first_lines -= 1
                        _log(settlement, _line(settlement)._replace(level=logging.INFO))

    def summarise(self) -> None:
        """Log one line for each queue in which jobs ended or were put back."""
        now = time.monotonic()
        seconds, self.since = now - self.since, now
        records, self._records = self._records, {}
        for queue, record in records.items():
            counts = ", ".join(
                f"{count:,} {_IN_WORDS.get(word, word)}"
                for word, count in record.counts.most_common()
            )
            ran, fields = _run_times(record.runs)
            more = (
                f"; {record.held_back:,} of them without a line of their own"
                if record.held_back
                else ""
            )
            extra = log_event(
                "jobs.summary",
                queue=queue,
                settled=dict(record.counts),
                seconds=round(seconds, 1),
                **fields,
            )
            log.log(
                record.level,
                "%s: %s in the last %.1f s%s%s",
                queue,
                counts,
                seconds,
                ran,
                more,
                extra=extra,
            )

    def _log_line(self, record: _Record, settlement: Settlement, *, bounded: bool) -> None:
        line = _line(settlement)
        if bounded and record.lines >= MOST_LINES:
            record.held_back += 1
            record.level = max(record.level, line.level)
            return
        record.lines += 1
        _log(settlement, line)


class _Line(NamedTuple):
    event: LogEvent
    level: int
    text: str


def _log(settlement: Settlement, line: _Line) -> None:
    claim = settlement.claim
    exception = settlement.exception if isinstance(settlement, Finished) else None
    log.log(
        line.level,
        "%s %s%s",
        claim.kind,
        line.text,
        "" if isinstance(settlement, Repeated) else _reason(settlement.error),
        exc_info=exception,
        extra=job_fields(claim, line.event),
    )


def _line(settlement: Settlement) -> _Line:
    """The event, its level, and its text after the kind's name."""
    claim = settlement.claim
    attempt = f"attempt {claim.attempt} of {claim.max_attempts}"
    match settlement:
        case Finished():
            match settlement.state:
                case State.COMPLETED:
                    return _Line("job.completed", logging.DEBUG, f"completed, {attempt}")
                case State.FAILED:
                    return _Line("job.failed", logging.ERROR, f"failed for good, {attempt}")
                case State.CANCELLED:
                    return _Line("job.cancelled", logging.WARNING, f"was cancelled, {attempt}")
        case Repeated():
            return _Line("job.repeated", logging.DEBUG, "completed a run of many")
        case Requeued():
            seconds = f"{settlement.delay.total_seconds():.1f} s"
            match settlement.why:
                case "retry":
                    return _Line(
                        "job.retried", logging.WARNING, f"failed, {attempt}; again in {seconds}"
                    )
                case "snooze":
                    return _snoozed(settlement, seconds)
                case "release":
                    return _Line(
                        "job.released", logging.INFO, "is released, the attempt is not charged"
                    )
    assert_never(settlement)


def _snoozed(requeued: Requeued, seconds: str) -> _Line:
    level = logging.INFO if requeued.error is None else logging.WARNING
    if requeued.wake_on is None:
        return _Line("job.snoozed", level, f"is snoozed for {seconds}")
    key = one_line(requeued.wake_on[:100])
    return _Line("job.snoozed", level, f"waits for signal {key}, for {seconds} at most")


def _run_times(runs: Sequence[float]) -> tuple[str, dict[str, float]]:
    if not runs:
        return "", {}
    ordered = sorted(runs)
    half, most = (
        ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for share in (0.5, 0.99)
    )
    fields = {"run_p50_ms": round(half, 3), "run_p99_ms": round(most, 3)}
    if len(ordered) == 1:
        return f"; it ran {half:.1f} ms", fields
    return f"; they ran p50 {half:.1f} ms, p99 {most:.1f} ms", fields


def _reason(error: str | None) -> str:
    """The type and message of an entry of `errors`, for one log line."""
    if error is None:
        return ""
    entry = decode(error)
    message = " ".join(str(entry.get("message", "")).split())
    return f": {entry.get('type')}: {message[:300]}"
