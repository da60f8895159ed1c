"""The laws that hold whatever happened. Pure: records in, violations out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.behaviour.chaos.deaths import Span
from tests.behaviour.chaos.orders import ENDS, HOOKED, RAISES
from tests.behaviour.chaos.records import Archived, Fate, Follower, Left, Promise, Records, Run

_NOT_BY_A_RUN = ("WorkerLost", "TimeoutError")


class Told(NamedTuple):
    """What a job that follows another is, and was told of it."""

    kind: str
    state: str | None
    claim: int | None


@dataclass(frozen=True, slots=True)
class Violation:
    """One law broken by one job; `n` is its number at the producer, None if no job is to blame."""

    law: str
    n: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.law}: {'' if self.n is None else f'job n={self.n} '}{self.what}"


def check(records: Records, queue_was_full: Sequence[Span] = ()) -> list[Violation]:
    """Every law on every job; the queue of notifications was full in these spans of time."""
    laws = (
        left_over,
        lost,
        archived_twice,
        unknown,
        ended_otherwise,
        settled_without_its_run,
        run_twice,
        ran_and_vanished,
        miscounted,
        gathered_otherwise,
        followed_otherwise,
    )
    return [
        *(violation for law in laws for violation in law(records)),
        *refused_for_its_notification(records, queue_was_full),
    ]


def refused_for_its_notification(
    records: Records, queue_was_full: Sequence[Span]
) -> Iterator[Violation]:
    """An insert that begins while the queue of notifications is full does not need it; one that had
    notified before cannot be helped.
    """
    for refusal in records.refusals:
        if any(span.began <= refusal.began <= span.ended for span in queue_was_full):
            yield Violation("refused for its notification", refusal.n, refusal.why)


def left_over(records: Records) -> Iterator[Violation]:
    """When all is quiet no job is live."""
    for row in records.left:
        yield Violation("left over", row.n, f"(id {row.id}) is still live: {row.what}")


def lost(records: Records) -> Iterator[Violation]:
    """What was acknowledged is in the archive, and so is whatever kept a job out by holding its
    key.
    """
    there = {row.n for row in records.archive} | {row.n for row in records.left}
    held = {row.id: row.key for row in records.archive}
    live = {row.id for row in records.left}
    for promise in records.promises.values():
        if promise.fate is Fate.KEPT and promise.n not in there:
            yield Violation(
                "lost",
                promise.n,
                f"(id {promise.id}, {promise.kind}) was acknowledged and is nowhere",
            )
        elif (
            promise.fate is Fate.EXISTED
            and promise.id not in live
            and held.get(promise.id or 0) != promise.key
        ):
            yield Violation(
                "lost",
                promise.n,
                f"was not stored because job {promise.id} held {promise.key}, which is nowhere",
            )


def archived_twice(records: Records) -> Iterator[Violation]:
    """A job ends once, and an id belongs to one job."""
    for n, times in Counter(row.n for row in records.archive).items():
        if times > 1:
            yield Violation("archived twice", n, f"is in the archive {times} times")
    for job_id, times in Counter(row.id for row in records.archive).items():
        if times > 1:
            yield Violation("archived twice", None, f"id {job_id} is in the archive {times} times")
    for n in {row.n for row in records.archive} & {row.n for row in records.left}:
        yield Violation("archived twice", n, "is in the archive and still live")


def unknown(records: Records) -> Iterator[Violation]:
    """Nothing is stored that was not sent, was rolled back, or was refused for its key; an
    acknowledged job has its id.
    """
    rows: list[Archived | Left] = [*records.archive, *records.left]
    for row in rows:
        promise = records.promises.get(row.n)
        if promise is None:
            yield Violation("unknown", row.n, f"(id {row.id}) was never sent")
        elif promise.fate in (Fate.VOID, Fate.EXISTED):
            yield Violation(
                "unknown",
                row.n,
                f"(id {row.id}) is stored although its insert was {promise.fate.name.lower()}",
            )
        elif promise.id not in (None, row.id):
            yield Violation(
                "unknown",
                row.n,
                f"was acknowledged as id {promise.id} and is stored as id {row.id}",
            )


def ended_otherwise(records: Records) -> Iterator[Violation]:
    """The final state is the kind's, unless its attempts ran out or somebody cancelled it; what was
    cancelled stays so.
    """
    for row in records.archive:
        promise = records.promises.get(row.n)
        if promise is None:
            continue
        if "unknown" in promise.answers:
            yield Violation("ended otherwise", row.n, f"(id {row.id}) was unknown to cancel()")
        if not _may_end_so(row, promise):
            tale = (
                f"attempt {row.attempt} of {row.max_attempts}, cancel() said"
                f" {list(promise.answers)}, errors {row.errors[-1:]}"
            )
            yield Violation(
                "ended otherwise", row.n, f"(id {row.id}, {row.kind}) ended {row.state}: {tale}"
            )


def _may_end_so(row: Archived, promise: Promise) -> bool:
    wanted = ENDS[promise.kind]
    out_of_attempts = row.max_attempts is not None and row.attempt >= row.max_attempts
    if "cancelled" in promise.answers:
        return row.state == "cancelled"
    if row.state == "failed" and (wanted != "failed" or promise.kind in RAISES):
        return out_of_attempts
    if row.state == "cancelled" and wanted != "cancelled":
        return bool({"requested", ""} & set(promise.answers))
    return row.state == wanted


def settled_without_its_run(records: Records) -> Iterator[Violation]:
    """Who settles holds the claim: the result is the one that the run under the archived claim
    returned.
    """
    by_name = {run.name: run for run in records.runs}
    by_claim = {(run.id, run.claim): run for run in records.runs}
    for row in records.archive:
        if row.state == "completed":
            trouble = _trouble_with_result(row, by_name)
        elif row.state == "failed" and row.errors and row.errors[-1]["type"] not in _NOT_BY_A_RUN:
            run = by_claim.get((row.id, row.claim or 0))
            trouble = (
                None
                if run and run.how in ("raised", "refused")
                else f"no run under its claim {row.claim} failed"
            )
        else:
            trouble = None
        if trouble is not None:
            yield Violation(
                "settled without its run", row.n, f"(id {row.id}, {row.kind}) {trouble}"
            )
    for row in records.archive:
        promise = records.promises.get(row.n)
        if (
            promise
            and row.kind == "snooze"
            and row.state == "completed"
            and row.result.get("snoozed") != promise.times
        ):
            yield Violation(
                "settled without its run",
                row.n,
                f"snoozed {row.result.get('snoozed')} times, not {promise.times}",
            )


def _trouble_with_result(row: Archived, by_name: dict[str, Run]) -> str | None:
    result = row.result if isinstance(row.result, dict) else {}
    run = by_name.get(str(result.get("run")))
    if run is None:
        return f"is completed with {row.result!r}, which no run returned"
    if (run.id, run.n, run.claim, run.attempt) != (row.id, row.n, row.claim, row.attempt):
        return (
            f"has claim {row.claim}, attempt {row.attempt} and the result of claim {run.claim},"
            f" attempt {run.attempt}"
        )
    return None if run.how == "returned" else f"is completed, and its run ended: {run.how}"


def run_twice(records: Records) -> Iterator[Violation]:
    """A claim is the right to one run."""
    numbers = {(run.id, run.claim): run.n for run in records.runs}
    for (job_id, claim), times in Counter((run.id, run.claim) for run in records.runs).items():
        if times > 1:
            yield Violation(
                "run twice",
                numbers[job_id, claim],
                f"(id {job_id}) ran {times} times under claim {claim}",
            )


def ran_and_vanished(records: Records) -> Iterator[Violation]:
    """What ran was stored, and is still known."""
    there = {row.n for row in records.archive} | {row.n for row in records.left}
    for run in records.runs:
        if run.n not in there:
            yield Violation(
                "ran and vanished",
                run.n,
                f"(id {run.id}) ran under claim {run.claim} and is nowhere",
            )


def gathered_otherwise(records: Records) -> Iterator[Violation]:
    """Who gathers signals has as many as it waited for: none twice, and each was sent to it."""
    for row in records.archive:
        promise = records.promises.get(row.n)
        if promise is None or row.kind != "gather" or row.state != "completed":
            continue
        marks = row.result["marks"]
        if len(marks) != promise.times or len(set(marks)) < len(marks):
            yield Violation("gathered otherwise", row.n, f"waited for {promise.times}, has {marks}")
        if strangers := set(marks) - records.signals.get(row.n, set()):
            yield Violation("gathered otherwise", row.n, f"was given {strangers}, sent to nobody")


def followed_otherwise(records: Records) -> Iterator[Violation]:
    """What follows an end is stored with it, once, or not at all; the end names it."""
    by_job: dict[int, list[Follower]] = {}
    for each in records.followers:
        by_job.setdefault(each.of, []).append(each)
        if each.state != "completed" or not each.named:
            what = f"{each.kind} {each.id} of job {each.of} ended {each.state}, named: {each.named}"
            yield Violation("followed otherwise", None, what)
    for row in records.archive:
        if row.kind in HOOKED:
            wanted = [Told("clean_up", row.state, None)]
        elif row.kind == "start" and row.state == "completed":
            wanted = [Told("child", None, row.claim)]
        else:
            wanted = []
        found = [Told(each.kind, each.said, each.claim) for each in by_job.pop(row.id, [])]
        if found != wanted:
            what = f"(id {row.id}, {row.kind}) ended {row.state} and was followed by {found}"
            yield Violation("followed otherwise", row.n, what)
    for job_id, strangers in by_job.items():
        what = f"{len(strangers)} jobs follow job {job_id}, which is nowhere"
        yield Violation("followed otherwise", None, what)


def miscounted(records: Records) -> Iterator[Violation]:
    """No attempt is charged beyond the limit, and each one that was charged is in `errors`, in
    order.
    """
    for row in records.archive:
        if row.max_attempts is not None and row.attempt > row.max_attempts:
            yield Violation(
                "miscounted",
                row.n,
                f"(id {row.id}) has attempt {row.attempt} of {row.max_attempts}",
            )
        if row.state == "cancelled":
            continue  # whether the last attempt had begun is not written down
        charged = row.attempt - (row.state == "completed")
        noted = [error["attempt"] for error in row.errors if error["type"] != "Cancel"]
        if noted != list(range(1, charged + 1)):
            yield Violation(
                "miscounted",
                row.n,
                f"(id {row.id}) {row.state} at attempt {row.attempt} with errors of {noted}",
            )
