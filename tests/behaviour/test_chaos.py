"""Random faults for ten seconds, and whether the checker and the plan of `make chaos` are worth
anything.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from hybrid_runner.errors import DatabaseUnavailable
from tests.behaviour.chaos.checker import check
from tests.behaviour.chaos.deaths import Absence, Span, wrongly_declared_dead
from tests.behaviour.chaos.faults import BETWEEN_SERVER_FAULTS, SERVER, What, plan
from tests.behaviour.chaos.full_queue import fill_queue
from tests.behaviour.chaos.journal import PRODUCER, RUNS, Journal
from tests.behaviour.chaos.postgres import Postgres, can_fill_queue
from tests.behaviour.chaos.records import (
    Archived,
    Fate,
    Follower,
    Left,
    Promise,
    Records,
    Refusal,
    Run,
)
from tests.behaviour.chaos.report import troubles
from tests.cli.running import ROOT, environment
from tests.support import faketime
from tests.support.outside import missing

SEED = 11271
NEWCOMERS = {What.NEWCOMER_IN_LOCK, What.NEWCOMER_AFTER_LOCK, What.NEWCOMER_WITHOUT_SERVER}


# --- ten seconds of it


@pytest.mark.alone
@pytest.mark.timeout(240)
def test_after_ten_seconds_of_faults_every_promise_was_kept() -> None:
    """A4, A6, B11, B16, D5, D6: killed, frozen and stopped workers, a killed server, lost
    connections; each job ends once, 200 signals at random moments are given once, and what follows
    an end is stored with it.
    """
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.behaviour.chaos",
            "--seconds",
            "10",
            "--workers",
            "2",
            "--jobs",
            "600",
            "--seed",
            str(SEED),
            "--patience",
            "90",
        ],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing was lost" in ended.stdout
    signals = re.search(r"signals sent +(\d+)", ended.stdout)
    assert signals is not None
    assert int(signals[1]) >= 200


# --- the plan


def test_a_seed_always_gives_the_same_faults() -> None:
    assert plan(7, 600, 4, 3.0) == plan(7, 600, 4, 3.0) != plan(8, 600, 4, 3.0)


def test_ten_minutes_hold_every_kind_of_fault_many_times() -> None:
    faults = plan(7, 600, 4, 3.0)
    counted = Counter(fault.what for fault in faults)
    assert set(counted) == set(What)
    assert min(counted.values()) >= 5
    assert {fault.worker for fault in faults} == {0, 1, 2, 3}
    steps = [fault.step for fault in faults if fault.what is What.CLOCK]
    assert min(steps) < -30
    assert max(steps) > 30
    assert min(map(abs, steps)) < 10
    newcomers = [fault.newcomer for fault in faults if fault.what in NEWCOMERS]
    assert {newcomer.is_killed for newcomer in newcomers} == {True, False}


def test_for_a_quarter_of_the_time_nobody_is_cut_off_or_frozen() -> None:
    excuses = SERVER | {
        What.FREEZE_LONG,
        What.FREEZE_SHORT,
        What.TERMINATE_SOME,
        What.TERMINATE_ALL,
        What.LIMIT,
    }
    quiet = [fault.what for fault in plan(7, 600, 4, 3.0) if 270 <= fault.at < 420]
    assert len(quiet) >= 50
    assert not excuses & set(quiet)
    assert {What.LOCK_SHORT, What.LOCK_LONG, What.CLOCK, What.FULL_QUEUE} <= set(quiet)


def test_the_server_is_given_time_between_its_faults() -> None:
    times = [fault.at for fault in plan(7, 600, 4, 3.0) if fault.what in SERVER]
    assert all(later - earlier >= BETWEEN_SERVER_FAULTS for earlier, later in pairwise(times))


def test_ten_seconds_hold_five_faults_of_different_sorts() -> None:
    kinds = {fault.what for fault in plan(SEED, 10, 2, 3.0)}
    assert len(kinds) >= 4
    assert kinds & SERVER
    assert kinds & {What.KILL, What.FREEZE_LONG}
    assert kinds & NEWCOMERS
    assert {What.CLOCK, What.FULL_QUEUE} <= kinds


# --- the checker, on records made by hand


def promise(n: int, kind: str = "noop", fate: Fate = Fate.KEPT, **more: Any) -> Promise:
    return Promise(n, kind, fate=fate, id=100 + n, **more)


def run(n: int, claim: int = 7, **more: Any) -> Run:
    values: dict[str, Any] = {
        "attempt": 1,
        "pid": 1,
        "began": 1.0,
        "ended": 2.0,
        "how": "returned",
    } | more
    return Run(name=f"run {n} {claim}", n=n, id=100 + n, claim=claim, **values)


def archived(
    n: int, claim: int = 7, kind: str = "noop", state: str = "completed", **more: Any
) -> Archived:
    values: dict[str, Any] = {"max_attempts": 8, "result": {"run": f"run {n} {claim}"}} | more
    return Archived(id=100 + n, n=n, kind=kind, state=state, claim=claim, **values)


def error(attempt: int, kind: str = "ConnectionError") -> dict[str, Any]:
    return {"attempt": attempt, "type": kind}


def good() -> Records:
    """One job of each fate; nothing is wrong."""
    return Records(
        promises={
            1: promise(1),
            2: promise(2, "flaky"),
            3: promise(3, "doomed"),
            4: promise(4, "noop", answers=("cancelled",)),
            5: promise(5, fate=Fate.VOID),
            6: replace(promise(6, fate=Fate.EXISTED, key="k"), id=107),
            7: promise(7, key="k"),
            8: replace(promise(8, fate=Fate.DOUBTFUL), id=None),
            9: promise(9, "snooze", times=1),
            10: promise(10, "start"),
            11: promise(11, "gather", times=2),
        },
        runs=[
            run(1),
            run(2, 7, how="raised"),
            run(2, 8, attempt=2),
            run(7),
            *(run(3, claim, attempt=claim, how="raised") for claim in (1, 2, 3)),
            run(9, 7, how="snoozed"),
            run(9, 8),
            run(10),
            *(run(11, claim, how="snoozed") for claim in (5, 6)),
            run(11),
        ],
        archive=[
            archived(1),
            archived(2, 8, "flaky", attempt=2, errors=[error(1)]),
            archived(
                3,
                3,
                "doomed",
                "failed",
                attempt=3,
                max_attempts=3,
                errors=[error(1), error(2), error(3)],
                result=None,
            ),
            archived(
                4, state="cancelled", claim=0, attempt=0, errors=[error(0, "Cancel")], result=None
            ),
            archived(7, key="k"),
            archived(9, 8, "snooze", result={"run": "run 9 8", "snoozed": 1}),
            archived(10, kind="start"),
            archived(11, kind="gather", result={"run": "run 11 7", "marks": ["0.0", "1.1"]}),
        ],
        left=[],
        followers=[
            Follower(203, "clean_up", "completed", 103, named=True, said="failed"),
            Follower(210, "child", "completed", 110, named=True, claim=7),
        ],
        signals={11: {"0.0", "1.0", "1.1"}},
    )


def followed(at: int, **values: Any) -> Records:
    """Good records but for one job that follows another."""
    records = good()
    records.followers[at] = replace(records.followers[at], **values)
    return records


def laws(records: Records) -> set[str]:
    return {violation.law for violation in check(records)}


def changed(n: int, **values: Any) -> Records:
    """Good records but for one row of the archive."""
    records = good()
    return replace(
        records, archive=[replace(row, **values) if row.n == n else row for row in records.archive]
    )


def promised(n: int, **values: Any) -> Records:
    """Good records but for one promise."""
    records = good()
    return replace(records, promises=records.promises | {n: replace(records.promises[n], **values)})


def ran(*more: Run, without: int = 0) -> Records:
    """Good records with more runs, or without those of one job."""
    records = good()
    return replace(records, runs=[*(one for one in records.runs if one.n != without), *more])


def without(n: int) -> Records:
    """Good records, but one job is not in the archive."""
    records = good()
    return replace(records, archive=[row for row in records.archive if row.n != n])


def test_good_records_break_no_law() -> None:
    assert check(good()) == []


def test_a_lost_job_is_found() -> None:
    [violation] = check(replace(without(4), runs=good().runs))
    assert (violation.law, violation.n) == ("lost", 4)


def test_a_lost_holder_of_a_key_is_found() -> None:
    assert {violation.n for violation in check(without(7)) if violation.law == "lost"} == {6, 7}


def test_a_job_that_ran_and_is_nowhere_is_found_although_its_insert_was_in_doubt() -> None:
    assert laws(ran(run(8))) == {"ran and vanished"}


def test_a_job_that_is_still_live_is_found() -> None:
    left = [Left(101, 1, "noop, running")]
    assert laws(replace(without(1), left=left)) == {"left over"}
    assert laws(replace(good(), left=left)) == {"left over", "archived twice"}


def test_a_doubly_archived_job_is_found() -> None:
    records = good()
    assert laws(replace(records, archive=[*records.archive, archived(1)])) == {"archived twice"}


@pytest.mark.parametrize("n", [5, 6, 77])
def test_a_job_that_nobody_stored_is_found(n: int) -> None:
    """Rolled back, refused for its key, never sent."""
    records = good()
    stranger = archived(n, result={"run": f"run {n} 7"})
    assert laws(
        replace(records, archive=[*records.archive, stranger], runs=[*records.runs, run(n)])
    ) == {"unknown"}


def test_an_id_that_is_not_the_acknowledged_one_is_found() -> None:
    assert "unknown" in laws(promised(1, id=999))


@pytest.mark.parametrize(
    "result",
    [{"run": "run 2 7"}, {"run": "run 1 7"}, {"run": "nobody's"}, None, 5],
    ids=["stale", "another's", "none's", "null", "5"],
)
def test_a_settle_by_a_stale_claim_is_found(result: object) -> None:
    """The result is not what the run under the archived claim returned."""
    assert laws(changed(2, result=result)) == {"settled without its run"}


def test_an_archived_claim_that_is_not_the_run_s_is_found() -> None:
    assert laws(changed(1, claim=8)) == {"settled without its run"}


@pytest.mark.parametrize("how", ["raised", "snoozed", "cancelled", None])
def test_a_completion_of_a_run_that_did_not_return_is_found(how: str | None) -> None:
    assert laws(ran(run(1, how=how), without=1)) == {"settled without its run"}


def test_a_failure_that_no_run_under_its_claim_reported_is_found() -> None:
    assert laws(changed(3, claim=9)) == {"settled without its run"}
    lost = [error(1), error(2), error(3, "WorkerLost")]
    assert laws(changed(3, claim=9, errors=lost)) == set()


def test_a_snooze_that_was_lost_or_counted_twice_is_found() -> None:
    assert laws(changed(9, result={"run": "run 9 8", "snoozed": 2})) == {"settled without its run"}


@pytest.mark.parametrize(
    "marks",
    [["0.0"], ["0.0", "0.0"], ["0.0", "1.0", "1.1"], ["0.0", "7.0"]],
    ids=["lost", "twice", "too many", "never sent"],
)
def test_a_signal_that_was_lost_or_given_twice_is_found(marks: list[str]) -> None:
    result = {"run": "run 11 7", "marks": marks}
    assert laws(changed(11, result=result)) == {"gathered otherwise"}


@pytest.mark.parametrize(
    "records",
    [
        followed(0, said="completed"),
        followed(0, state="failed"),
        followed(0, of=104),
        followed(1, claim=6),
        followed(1, named=False),
        replace(good(), followers=good().followers[:1]),
        replace(good(), followers=[*good().followers, good().followers[1]]),
        changed(10, state="cancelled"),
    ],
    ids=[
        "told otherwise",
        "failed",
        "of another",
        "of a stale claim",
        "not named",
        "missing",
        "twice",
        "of one that did not complete",
    ],
)
def test_what_follows_an_end_wrongly_is_found(records: Records) -> None:
    assert "followed otherwise" in laws(records)


def test_two_runs_of_one_claim_are_found() -> None:
    assert laws(ran(replace(run(1), name="again"))) == {"run twice"}


@pytest.mark.parametrize(
    ("attempt", "errors"),
    [(2, []), (1, [error(1)]), (3, [error(1), error(1)]), (9, [error(n) for n in range(1, 9)])],
)
def test_an_attempt_too_many_and_one_without_its_error_are_found(
    attempt: int, errors: list[dict[str, Any]]
) -> None:
    records = changed(1, attempt=attempt, errors=errors)
    assert laws(
        replace(
            records,
            runs=[replace(one, attempt=attempt) if one.n == 1 else one for one in records.runs],
        )
    ) == {"miscounted"}


@pytest.mark.parametrize(
    ("answers", "state", "is_wrong"),
    [
        ((), "cancelled", True),
        (("finished",), "cancelled", True),
        (("requested",), "cancelled", False),
        (("",), "cancelled", False),
        (("requested",), "completed", False),
        (("cancelled",), "completed", True),
        (("unknown",), "completed", True),
    ],
)
def test_an_end_that_cancel_did_not_announce_is_found(
    answers: tuple[str, ...], state: str, is_wrong: bool
) -> None:
    records = changed(1, state=state)
    records = replace(records, promises=records.promises | {1: promise(1, answers=answers)})
    assert laws(records) == ({"ended otherwise"} if is_wrong else set())


def test_a_failure_with_attempts_left_is_found() -> None:
    failed = changed(1, state="failed", errors=[error(1, "WorkerLost")], attempt=1)
    assert laws(failed) == {"ended otherwise"}
    assert (
        laws(changed(1, state="failed", errors=[error(1, "WorkerLost")], attempt=1, max_attempts=1))
        == set()
    )


# --- what was written down


def test_journals_are_read_as_what_was_known_when_a_process_died(tmp_path: Path) -> None:
    producer, runs = Journal(tmp_path / PRODUCER), Journal(tmp_path / RUNS.format(1))
    jobs = [{"n": n, "kind": "noop", "key": None, "delay": 2.0, "times": 1} for n in range(4)]
    producer.write(what="sent", transaction=0, jobs=jobs[:2], at=10.0)
    producer.write(
        what="kept", transaction=0, stored=[(0, 100, "inserted"), (1, 90, "exists")], at=11.0
    )
    producer.write(what="sent", transaction=2, jobs=jobs[2:3], at=12.0)
    producer.write(what="void", transaction=2)
    producer.write(what="sent", transaction=3, jobs=jobs[3:], at=13.0)
    producer.write(what="cancelling", n=0)
    producer.write(what="cancelled", n=0, answer="requested")
    producer.write(what="cancelling", n=0)
    runs.write(what="began", run="a", n=0, id=100, claim=7, attempt=1, pid=1, at=12.5)
    records = Records.read(tmp_path, [], [], [])
    assert [promise.fate for promise in records.promises.values()] == [
        Fate.KEPT,
        Fate.EXISTED,
        Fate.VOID,
        Fate.DOUBTFUL,
    ]
    assert records.promises[0] == Promise(
        0, "noop", None, 1, 12.0, Fate.KEPT, 100, ("requested", "")
    )
    assert records.runs == [Run("a", 0, 100, 7, 1, 1, 12.5)]
    producer.close()
    runs.close()


def test_what_a_worker_never_has_reason_to_say_is_found() -> None:
    usual = {
        "level": "warning",
        "message": "settling: Postgres does not answer; trying again in 1.0 s",
    }
    ended = {
        "level": "error",
        "message": "worker a: its settler has ended: it is started again in 5 s",
    }
    crash = {
        "level": "error",
        "message": "claimer failed",
        "exception": "Traceback\n  …\nKeyError: 7",
    }
    assert list(troubles([usual, ended, crash])) == [
        "a worker's log: worker a: its settler has ended: it is started again in 5 s ",
        "a worker's log: claimer failed KeyError: 7",
    ]


# --- who may be declared dead


def declared_dead(at: float) -> dict[str, str]:
    return {
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
        "message": "worker a was declared dead although it lives: its 3 jobs are stopped here",
    }


@pytest.mark.parametrize(
    ("absences", "is_wrong"),
    [
        ([], True),
        ([Absence(1, Span(90, 99))], False),
        ([Absence(None, Span(99, 99.1))], False),
        ([Absence(2, Span(90, 99))], True),
        ([Absence(1, Span(101, 105))], True),
        ([Absence(1, Span(70, 80))], True),
    ],
    ids=["never away", "frozen", "cut off", "another frozen", "frozen later", "long ago"],
)
def test_a_live_worker_that_is_declared_dead_without_having_been_away_is_found(
    absences: list[Absence], is_wrong: bool
) -> None:
    logs = {1: [{"at": "never read", "message": "settled 5 jobs"}, declared_dead(100)], 2: []}
    assert len(list(wrongly_declared_dead(logs, absences, 3.0))) == is_wrong


def test_an_insert_that_was_refused_while_the_queue_of_notifications_was_full_is_found() -> None:
    refused = replace(good(), refusals=[Refusal(1, 10.0, "too many notifications")])
    assert check(refused, [Span(11, 12)]) == []  # it may have notified before
    assert {one.law for one in check(refused, [Span(9, 12)])} == {"refused for its notification"}


# --- what the faults do


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Postgres]:
    async with Postgres.running(tmp_path / "postgres") as postgres:
        yield postgres


async def test_the_server_s_clock_goes_as_it_is_set_and_ours_does_not(tmp_path: Path) -> None:
    if faketime.find() is None:
        missing(faketime.why_absent())

    async def ahead(server: Postgres) -> int:
        [[now]] = await server.fetch("SELECT extract(epoch FROM clock_timestamp())::float8")
        return round(float(now - time.time()) / 50)

    async with Postgres.running(tmp_path / "postgres", with_clock=True) as server:
        assert server.clock is not None
        with server.clock.ahead(100):
            with server.clock.ahead(-300):
                assert await ahead(server) == -4
            assert await ahead(server) == 2
            await server.end(signal.SIGKILL)
            assert await ahead(server) == 2
        assert await ahead(server) == 0


async def test_jobs_are_inserted_while_the_queue_of_notifications_is_full(server: Postgres) -> None:
    if not can_fill_queue():
        missing("the queue of notifications can be made small since PostgreSQL 17")
    async with server.connected() as idle, server.connected() as other:
        await fill_queue(idle, other)
        assert await other.fetchval("SELECT pg_notification_queue_usage()") > 0.9
        with pytest.raises(asyncpg.ProgramLimitExceededError):
            await other.execute("NOTIFY anybody")
        await other.execute("INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('noop', '{}')")


async def test_a_server_that_is_away_comes_again_when_its_time_is_over(server: Postgres) -> None:
    async with server.away():
        with pytest.raises(DatabaseUnavailable):
            async with server.connected():
                pass
    async with server.connected() as connection:
        assert await connection.fetchval("SELECT 1") == 1
