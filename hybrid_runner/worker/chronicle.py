"""Says in the log what became of jobs: a summary of what is ordinary, a line for what is not, and at debug level a line for each.

However many jobs fail, a log that people read stays one: beyond some lines the summary says how many there were.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from hybrid_runner.happenings import Search, Writing
from hybrid_runner.jsontext import decode
from hybrid_runner.models import State
from hybrid_runner.outcomes import Finished, Requeued, Settlement, word_of
from hybrid_runner.telemetry.about import about

log = logging.getLogger("hybrid_runner.worker")

EVERY = 10.0
"""Seconds between two summaries of a queue in which jobs ended."""
MOST_LINES = 20
"""In this time, of a queue, so many jobs get a line of their own."""
_ORDINARY = State.COMPLETED.value
_QUEUE = attrgetter("claim.queue")
_RUNS = 1000
"""The summary's percentiles are those of the last so many runs."""


class _Page:
    """One queue since its last summary."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.runs: deque[float] = deque(maxlen=_RUNS)
        self.lines = 0
        self.held_back = self.warnings_held_back = 0


class Chronicle:
    """An observer; `run` belongs among the worker's loops, `summarise` to its end."""

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}

    def searched(self, search: Search) -> None:
        """What is found is the claimer's to say."""

    def rescued(self, settled: Sequence[Settlement]) -> None:
        """What is rescued is the rescuer's to say."""

    def wrote(self, writing: Writing) -> None:
        """Postgres has them."""
        is_each_told = log.isEnabledFor(logging.DEBUG)
        for queue, settled in groupby(writing.settled, _QUEUE):
            page = self._pages.get(queue) or self._pages.setdefault(queue, _Page())
            batch = list(settled)
            words = list(map(word_of, batch))
            page.counts.update(words)
            page.runs += [s.claim.ended - s.claim.began for s in batch[-_RUNS:] if s.claim.began]
            if is_each_told or words.count(_ORDINARY) < len(words):
                for settlement, word in zip(batch, words, strict=True):
                    if is_each_told or word != _ORDINARY:
                        self._tell(page, settlement, bounded=not is_each_told)

    async def run(self) -> None:
        """Summarise from time to time."""
        while True:
            await asyncio.sleep(EVERY)
            self.summarise()

    def summarise(self) -> None:
        """One line for each queue in which jobs ended."""
        pages, self._pages = self._pages, {}
        for queue, page in pages.items():
            seconds = time.monotonic() - page.began
            counts = ", ".join(f"{word} {count:,}" for word, count in page.counts.most_common())
            ran, figures = _percentiles(page.runs)
            more = f"; {page.held_back:,} of them without a line of their own" if page.held_back else ""
            level = logging.WARNING if page.warnings_held_back else logging.INFO
            extra = {"queue": queue, "settled": dict(page.counts), "seconds": round(seconds, 1), **figures}
            log.log(level, "%s: %s in %.1f s%s%s", queue, counts, seconds, ran, more, extra=extra)

    def _tell(self, page: _Page, settlement: Settlement, *, bounded: bool) -> None:
        level = _level(settlement)
        if bounded and page.lines >= MOST_LINES:
            page.held_back += 1
            page.warnings_held_back += level == logging.WARNING
            return
        page.lines += 1
        claim, why = settlement.claim, _reason(settlement.error)
        if isinstance(settlement, Finished):
            state = word_of(settlement)
            log.log(level, "%s %s, archived after attempt %d%s", claim.kind, state, claim.attempt, why, extra=about(claim))
        else:
            delay = settlement.delay.total_seconds()
            log.log(level, "%s %s: queued again, due in %.1f s%s", claim.kind, settlement.why, delay, why, extra=about(claim))


def _level(settlement: Settlement) -> int:
    match settlement:
        case Finished(state=State.COMPLETED):
            return logging.DEBUG
        case Requeued(error=None):
            return logging.INFO
        case _:
            return logging.WARNING


def _percentiles(runs: Sequence[float]) -> tuple[str, dict[str, float]]:
    if not runs:
        return "", {}
    ordered = sorted(runs)
    half, most = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for share in (0.5, 0.99))
    return f", ran p50 {half:.1f} ms, p99 {most:.1f} ms", {"run_p50_ms": round(half, 3), "run_p99_ms": round(most, 3)}


def _reason(error: str | None) -> str:
    """What an entry of `errors` says, for one log line."""
    if error is None:
        return ""
    entry = decode(error)
    message = " ".join(str(entry.get("message", "")).split())
    return f": {entry.get('type')}: {message[:300]}"
