"""Says in the log what became of jobs: a summary of what is ordinary, a line for what is not, and
at debug level one for each.

However many jobs fail, a log that people read stays one: beyond some lines the summary says how
many there were.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import assert_never

from hybrid_runner.handlers.registry import Registry
from hybrid_runner.jsontext import decode
from hybrid_runner.model.events import BatchSettled, Observer
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Finished, Requeued, Settlement, word_of
from hybrid_runner.telemetry.log_events import LogEvent, log_event
from hybrid_runner.telemetry.logs.job_fields import about

log = logging.getLogger("hybrid_runner.worker")

EVERY = 10.0
"""Seconds between two summaries of a queue in which jobs ended."""
MOST_LINES = 20
"""In this time, of a queue, so many jobs get a line of their own."""
MOST_KINDS = 20
"""The line about a worker's start names so many kinds."""
_ORDINARY = State.COMPLETED.value
_QUEUE = attrgetter("claim.queue")
_RUNS = 1000
"""The summary's percentiles are those of the last so many runs."""
_IN_WORDS = {"retry": "to be tried again", "snooze": "snoozed", "release": "given back"}
"""What summaries call jobs that were put back; the others by their final state."""


def tell_start(
    worker_id: str, queues: Mapping[str, int], registry: Registry, thread_slots: int
) -> None:
    """What a worker works on: its queues, its kinds, and how many of the sync handlers run at a
    time.
    """
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


class _Page:
    """One queue since the last summary."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.runs: deque[float] = deque(maxlen=_RUNS)
        self.lines = self.held_back = 0
        self.level = logging.INFO
        """The highest among the lines that were held back."""


class JobLog(Observer):
    """An observer; `run` belongs among the worker's loops, `summarise` to its end."""

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}
        self.since = time.monotonic()
        """When the last summary was made."""

    def on_settled(self, batch: BatchSettled) -> None:
        """Postgres has them."""
        is_each_told = log.isEnabledFor(logging.DEBUG)
        for queue, settled in groupby(batch.settled, _QUEUE):
            page = self._pages.get(queue) or self._pages.setdefault(queue, _Page())
            of_queue = list(settled)
            words = list(map(word_of, of_queue))
            page.counts.update(words)
            page.runs += [s.claim.ended - s.claim.began for s in of_queue[-_RUNS:] if s.claim.began]
            if is_each_told or words.count(_ORDINARY) < len(words):
                for settlement, word in zip(of_queue, words, strict=True):
                    if is_each_told or word != _ORDINARY:
                        self._tell(page, settlement, bounded=not is_each_told)

    async def run(self) -> None:
        """Summarise from time to time."""
        while True:
            await asyncio.sleep(EVERY)
            self.summarise()

    def summarise(self) -> None:
        """One line for each queue in which jobs ended."""
        now = time.monotonic()
        seconds, self.since = now - self.since, now
        pages, self._pages = self._pages, {}
        for queue, page in pages.items():
            counts = ", ".join(
                f"{count:,} {_IN_WORDS.get(word, word)}"
                for word, count in page.counts.most_common()
            )
            ran, figures = _run_times(page.runs)
            more = (
                f"; {page.held_back:,} of them without a line of their own"
                if page.held_back
                else ""
            )
            extra = log_event(
                "jobs.summary",
                queue=queue,
                settled=dict(page.counts),
                seconds=round(seconds, 1),
                **figures,
            )
            log.log(
                page.level,
                "%s: %s in the last %.1f s%s%s",
                queue,
                counts,
                seconds,
                ran,
                more,
                extra=extra,
            )

    def _tell(self, page: _Page, settlement: Settlement, *, bounded: bool) -> None:
        name, level, said = _line(settlement)
        if bounded and page.lines >= MOST_LINES:
            page.held_back += 1
            page.level = max(page.level, level)
            return
        page.lines += 1
        claim = settlement.claim
        exception = settlement.exception if isinstance(settlement, Finished) else None
        log.log(
            level,
            "%s %s%s",
            claim.kind,
            said,
            _reason(settlement.error),
            exc_info=exception,
            extra=about(claim, name),
        )


def _line(settlement: Settlement) -> tuple[LogEvent, int, str]:
    """The event, its level, and what it says of the job."""
    claim = settlement.claim
    attempt = f"attempt {claim.attempt} of {claim.max_attempts}"
    match settlement:
        case Finished():
            match settlement.state:
                case State.COMPLETED:
                    return "job.completed", logging.DEBUG, f"completed, {attempt}"
                case State.FAILED:
                    return "job.failed", logging.ERROR, f"failed for good, {attempt}"
                case State.CANCELLED:
                    return "job.cancelled", logging.WARNING, f"was cancelled, {attempt}"
        case Requeued():
            seconds = f"{settlement.delay.total_seconds():.1f} s"
            match settlement.why:
                case "retry":
                    return "job.retried", logging.WARNING, f"failed, {attempt}; again in {seconds}"
                case "snooze":
                    return "job.snoozed", logging.INFO, f"is snoozed for {seconds}"
                case "release":
                    return "job.released", logging.INFO, "is given back, the attempt is not charged"
    assert_never(settlement)


def _run_times(runs: Sequence[float]) -> tuple[str, dict[str, float]]:
    if not runs:
        return "", {}
    ordered = sorted(runs)
    half, most = (
        ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for share in (0.5, 0.99)
    )
    figures = {"run_p50_ms": round(half, 3), "run_p99_ms": round(most, 3)}
    if len(ordered) == 1:
        return f"; it ran {half:.1f} ms", figures
    return f"; they ran p50 {half:.1f} ms, p99 {most:.1f} ms", figures


def _reason(error: str | None) -> str:
    """What an entry of `errors` says, for one log line."""
    if error is None:
        return ""
    entry = decode(error)
    message = " ".join(str(entry.get("message", "")).split())
    return f": {entry.get('type')}: {message[:300]}"
