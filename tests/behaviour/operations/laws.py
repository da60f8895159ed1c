"""What holds whatever happened. Pure: records in, sentences about what is wrong out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.behaviour.operations.records import Ended, Follower, Records

MARGIN = timedelta(seconds=2)
"""A job that was committed late, or was locked for a moment, may start after younger ones."""
OWN = ("completes_itself", "raises_after_completing")
"""Kinds whose effect is written in the transaction that completes them."""
UNRECORDED = "lingers"
"""Its runs are not written down."""
ENDS = {
    "returns": {"completed"},
    "naps": {"completed"},
    "raises": {"completed", "failed"},
    "refuses": {"failed"},
    "snoozes": {"completed"},
    "asks_again": {"completed"},
    "lingers": {"completed"},
    "completes_itself": {"completed"},
    "rolls_back": {"completed"},
    "raises_after_completing": {"completed"},
    "gathers": {"completed"},
    "starts": {"completed"},
}
HOOKED = ("naps", "refuses", "snoozes")
"""Kinds whose ends are followed by a `clean_up`."""


def check(records: Records) -> list[str]:
    """Every law on every job."""
    laws = (
        lost,
        ended_twice,
        unknown,
        ran_twice,
        too_many_attempts,
        ended_otherwise,
        effects,
        started_while_paused,
        out_of_order,
        gathered_otherwise,
        followed_otherwise,
    )
    return [f"{law.__name__}: {what}" for law in laws for what in law(records)]


def lost(records: Records) -> Iterator[str]:
    there = {row.id for row in records.ended}
    for job_id, kind, state in records.left:
        yield f"job {job_id} ({kind}) is still {state}"
    for job_id in records.known.keys() - there - {row[0] for row in records.left}:
        yield f"job {job_id} was committed and is nowhere"


def ended_twice(records: Records) -> Iterator[str]:
    for job_id, times in Counter(row.id for row in records.ended).items():
        if times > 1:
            yield f"job {job_id} is in the archive {times} times"


def unknown(records: Records) -> Iterator[str]:
    for row in records.ended:
        known = records.known.get(row.id)
        if known is None:
            undone = "was rolled back" if row.id in records.undone else "was never committed"
            yield f"job {row.id} ({row.kind}) {undone}, and ended {row.state}"
        elif row.mark not in known.marks:
            yield f"job {row.id} has mark {row.mark}, committed were {sorted(known.marks)}"
    for run in records.runs:
        known = records.known.get(run.id)
        if known is None or run.mark not in known.marks:
            yield f"job {run.id} ran with mark {run.mark}, which nobody committed"


def ran_twice(records: Records) -> Iterator[str]:
    for (job_id, claim), times in Counter((run.id, run.claim) for run in records.runs).items():
        if times > 1:
            yield f"claim {claim} of job {job_id} ran {times} times"


def too_many_attempts(records: Records) -> Iterator[str]:
    runs = Counter(run.id for run in records.runs)
    for row in records.ended:
        if row.attempt > (row.max_attempts or 0):
            yield f"job {row.id} ended at attempt {row.attempt} of {row.max_attempts}"
        if _touched(records, row) or row.kind == UNRECORDED:
            continue
        if runs[row.id] != row.attempt + row.snoozes:
            yield (
                f"job {row.id} ({row.kind}) ran {runs[row.id]} times: attempt {row.attempt},"
                f" {row.snoozes} snoozes"
            )


def ended_otherwise(records: Records) -> Iterator[str]:
    for row in records.ended:
        known = records.known.get(row.id)
        if known is None:
            continue
        if not known.touched and row.state not in ENDS[row.kind]:
            yield f"job {row.id} ({row.kind}) ended {row.state}"
        if row.state == "cancelled" and not {"cancelled", "requested"} & set(known.answers):
            yield f"job {row.id} ({row.kind}) ended cancelled, and nobody was told so"
        if row.kind == "raises" and row.state == "failed" and row.attempt < (row.max_attempts or 0):
            yield f"job {row.id} failed at attempt {row.attempt} of {row.max_attempts}"


def effects(records: Records) -> Iterator[str]:
    """An effect and its completion come together, once."""
    written = Counter(records.effects)
    claims: dict[int, list[int]] = defaultdict(list)
    for job_id, claim in written:
        claims[job_id].append(claim)
    for (job_id, claim), times in written.items():
        if times > 1:
            yield f"the effect of job {job_id} under claim {claim} was written {times} times"
    for row in records.ended:
        known = records.known.get(row.id)
        retried = known is not None and "queued" in known.answers
        mine = claims[row.id]
        if row.kind in OWN and row.state == "completed" and row.claim not in mine:
            yield f"job {row.id} ({row.kind}) is completed without its effect"
        if not retried and [claim for claim in mine if claim != row.claim]:
            yield f"job {row.id} ({row.kind}) has effects of claims that did not complete it"
        if mine and not retried and row.state != "completed":
            yield f"job {row.id} ({row.kind}) ended {row.state} and has its effect"


def started_while_paused(records: Records) -> Iterator[str]:
    for pause in records.pauses:
        for row in records.ended:
            if (
                row.queue == pause.queue
                and row.started_at is not None
                and pause.since < row.started_at < pause.until
            ):
                yield f"job {row.id} started at {row.started_at}, in {pause}"


def out_of_order(records: Records) -> Iterator[str]:
    """Of two jobs that only their producer touched, the younger does not overtake the older by more
    than the margin.
    """
    lanes: dict[tuple[str, int], list[Ended]] = defaultdict(list)
    for row in records.ended:
        if row.attempt == 1 and not row.snoozes and row.started_at and not _touched(records, row):
            lanes[row.queue, row.priority].append(row)
    for lane in lanes.values():
        lane.sort(key=lambda row: row.run_at)
        for place, row in enumerate(lane):
            claimable = max(row.run_at, records.known[row.id].claimable)
            for younger in lane[place + 1 :]:
                if _started(younger) - claimable > MARGIN < _started(row) - _started(younger):
                    yield (
                        f"job {row.id} could be claimed from {claimable} and started at"
                        f" {row.started_at}; job {younger.id}, due at {younger.run_at}, started at"
                        f" {younger.started_at}"
                    )


def gathered_otherwise(records: Records) -> Iterator[str]:
    """Each signal that was committed while its job waited was given to it, once; no other was."""
    for row in records.ended:
        if row.kind != "gathers" or row.state != "completed":
            continue
        marks = (row.result or {})["marks"]
        for mark, times in Counter(marks).items():
            signal = records.signals.get(mark)
            if times > 1:
                yield f"job {row.id} was given signal {mark} {times} times"
            if signal is None or signal.job_id != row.id:
                yield f"job {row.id} was given signal {mark}, which nobody committed for it"
        for mark, signal in records.signals.items():
            is_in_time = row.started_at is not None and signal.sent_before < row.started_at
            is_mine = signal.job_id == row.id and not _touched(records, row)
            if is_mine and is_in_time and mark not in marks:
                yield f"job {row.id} was not given signal {mark}"


def followed_otherwise(records: Records) -> Iterator[str]:
    """Each end is followed by what belongs to it, once; who was retried may have ended before."""
    followers: dict[int, list[Follower]] = defaultdict(list)
    for each in records.followers:
        followers[each.of].append(each)
    for row in records.ended:
        known, mine = records.known.get(row.id), followers.pop(row.id, [])
        most = 1 + (0 if known is None else known.answers.count("queued"))
        claims = [each.claim for each in mine]
        if row.kind in HOOKED:
            is_so = 1 <= len(mine) <= most and row.state in [each.said for each in mine]
        elif row.kind == "starts" and row.state == "completed":
            is_so = row.claim in claims and len(claims) == len(set(claims)) <= most
        elif row.kind == "starts":
            is_so = len(claims) == len(set(claims)) < most
        else:
            is_so = not mine
        if not is_so:
            yield (
                f"job {row.id} ({row.kind}) ended {row.state} under claim {row.claim}, at most"
                f" {most} times, and was followed by {mine}"
            )
    for job_id, mine in followers.items():
        yield f"{mine} follow job {job_id}, which is nowhere"


def _started(row: Ended) -> datetime:
    assert row.started_at is not None
    return row.started_at


def _touched(records: Records, row: Ended) -> bool:
    known = records.known.get(row.id)
    return known is None or known.touched
