"""The figures of one run, for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.behaviour.chaos.deaths import DECLARED_DEAD
from tests.behaviour.chaos.records import Fate, Records

_SAYS_STALE = "is no longer valid"
_SAYS_RESCUED = "rescued after attempt"
_SAYS_MISSED = "has ended: it is started again"


def figures(
    records: Records, log: Iterable[Mapping[str, Any]], over_at: float
) -> Iterator[tuple[str, str]]:
    """Names and values; `over_at` is when the last fault was over."""
    fates = Counter(promise.fate for promise in records.promises.values())
    states = Counter(row.state for row in records.archive)
    yield "jobs sent", str(len(records.promises))
    yield (
        "acknowledged",
        (
            f"{fates[Fate.KEPT]} ({fates[Fate.VOID]} void, {fates[Fate.DOUBTFUL]} in doubt,"
            f" {fates[Fate.EXISTED]} held keys)"
        ),
    )
    yield "archived", f"{len(records.archive)} ({_counted(states)})"
    sent = sum(len(marks) for marks in records.signals.values())
    yield "signals sent", f"{sent} (for {len(records.signals)} jobs)"
    yield "followed", _counted(Counter(each.kind for each in records.followers))
    hows = Counter(run.how or "died" for run in records.runs)
    yield "runs", f"{len(records.runs)} ({_counted(hows)})"
    yield (
        "re-runs",
        (
            f"{_reruns(records)} (after a run that died or was cancelled, or whose outcome did not"
            " count)"
        ),
    )
    waits = _waits(records)
    yield "longest wait from due to first begin", _longest(waits.values())
    late = [wait for n, wait in waits.items() if records.promises[n].due > over_at]
    yield "the same, of jobs due after the last fault", f"{_longest(late)} ({len(late)} jobs)"
    said = Counter(
        word
        for line in log
        for word in (_SAYS_STALE, _SAYS_RESCUED, DECLARED_DEAD)
        if word in line["message"]
    )
    yield "stale settles", str(said[_SAYS_STALE])
    yield "rescues", str(said[_SAYS_RESCUED])
    yield "workers declared dead while they lived", str(said[DECLARED_DEAD])


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """A worker's log; what is not JSON comes from an interpreter in trouble."""
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            yield {"level": "critical", "message": text, "exception": ""}


def troubles(log: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What a worker never has reason to say, whatever its surroundings do."""
    for line in log:
        if line.get("event") == "job.failed":  # a handler of the scenario
            continue
        if line["level"] in ("error", "critical") and (
            "exception" in line or _SAYS_MISSED in line["message"]
        ):
            last = str(line.get("exception", "")).strip().rpartition("\n")[2]
            yield f"a worker's log: {line['message']} {last}"


def _reruns(records: Records) -> int:
    """Runs that would not have been without faults: a snooze and an error ask for another by
    themselves.
    """
    last: dict[int, str | None] = {}
    reruns = 0
    for run in sorted(records.runs, key=lambda run: run.began):
        reruns += run.n in last and last[run.n] not in ("snoozed", "raised")
        last[run.n] = run.how
    return reruns


def _waits(records: Records) -> dict[int, float]:
    waits: dict[int, float] = {}
    for run in sorted(records.runs, key=lambda run: run.began):
        promise = records.promises.get(run.n)
        if promise is not None and promise.fate is Fate.KEPT:
            waits.setdefault(run.n, max(0.0, run.began - promise.due))
    return waits


def _longest(waits: Iterable[float]) -> str:
    ordered = sorted(waits)
    return (
        f"{ordered[-1]:.2f} s, median {ordered[len(ordered) // 2] * 1000:.1f} ms"
        if ordered
        else "none"
    )


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counter.most_common())
