"""Outcomes that are raised mean what they mean returned, wherever a handler runs."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import orjson
import pytest
from opentelemetry.trace import StatusCode

from hybrid_runner import Cancel, ConfigurationError, Fail, JobView, Retry, Snooze, State
from hybrid_runner.errors import OpenInAnotherLoop
from hybrid_runner.model.outcomes import HandlerOutcome, Raised, _Raisable, outcome_of_exception
from hybrid_runner.storage.connections.connection import Connection
from tests.support.recorded import recording
from tests.support.working import outcome, runner, working
from tests.worker import handlers

EVERYWHERE = pytest.mark.parametrize("kind", ["decide", "decide_in_thread", "decide_in_process"])
ALL = [
    Fail("no"),
    Cancel(reason="no"),
    Retry(),
    Retry(after="5s", reason="busy"),
    Snooze("5s", data={"a": 1}),
    Snooze(until=datetime(2030, 1, 1, tzinfo=UTC)),
]


async def said(dsn: str, kind: str, what: str) -> JobView:
    app = runner(dsn, handlers.app.registry)
    async with working(app):
        return await outcome(app, kind, {"what": what})


@EVERYWHERE
async def test_a_fail_raised_three_calls_deep_ends_the_job_at_its_first_attempt(
    dsn: str, kind: str
) -> None:
    job = await said(dsn, kind, "fail")
    assert (job.state, job.attempt, len(job.errors)) == (State.FAILED, 1, 1)
    assert (job.errors[0]["message"], "traceback" in job.errors[0]) == ("no such card", False)


@EVERYWHERE
async def test_a_raised_cancel_cancels(dsn: str, kind: str) -> None:
    job = await said(dsn, kind, "cancel")
    assert (job.state, job.errors[0]["message"]) == (State.CANCELLED, "no longer wanted")


@EVERYWHERE
async def test_a_raised_retry_is_charged_and_keeps_its_own_pause(dsn: str, kind: str) -> None:
    job = await said(dsn, kind, "retry")
    assert (job.state, job.result, job.errors[0]["message"]) == (State.COMPLETED, "2 None", "busy")


@EVERYWHERE
async def test_a_raised_snooze_keeps_its_data_and_is_not_charged(dsn: str, kind: str) -> None:
    job = await said(dsn, kind, "snooze")
    assert (job.state, job.result) == (State.COMPLETED, "1 {'seen': [1, 2]}")
    assert not job.errors


@EVERYWHERE
async def test_a_fail_raised_from_an_error_keeps_its_cause(
    dsn: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "hybrid_runner")
    job = await said(dsn, kind, "fail from")
    assert (job.state, job.errors[0]["type"]) == (State.FAILED, "Fail")
    assert "KeyError: 'card'" in job.errors[0]["traceback"]
    [line] = [r for r in caplog.records if getattr(r, "event", "") == "job.failed"]
    if kind != "decide_in_process":  # from there errors come as text alone
        assert line.exc_info is not None
        assert line.exc_info[0] is KeyError


@EVERYWHERE
async def test_an_outcome_class_of_the_applications_own_is_the_outcome_it_is(
    dsn: str, kind: str
) -> None:
    job = await said(dsn, kind, "fail in own words")
    assert (job.state, job.errors[0]["message"]) == (State.FAILED, "there is no card 7")


@pytest.mark.parametrize("what", ["unsendable", "unreadable"])
@EVERYWHERE
async def test_what_cannot_be_sent_or_stored_fails_the_job_in_one_line(
    dsn: str, kind: str, what: str
) -> None:
    job = await said(dsn, kind, what)
    assert (job.state, job.attempt, job.errors[0]["type"]) == (State.FAILED, 1, "OutcomeRefused")
    assert "cannot be" in job.errors[0]["message"]
    assert "\n" not in job.errors[0]["message"]


@pytest.mark.parametrize("returned", [True, False])
async def test_a_snooze_said_while_the_attempt_is_stopped_counts_raised_as_returned(
    dsn: str, database: Connection, *, returned: bool
) -> None:
    app = runner(dsn, grace=0.05)
    began = asyncio.Event()

    @app.job("stopped")
    async def stopped(_: Any) -> Snooze:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            snooze = Snooze("1h", data={"done": 3})
            if returned:
                return snooze
            raise snooze from None
        raise AssertionError

    async with working(app):
        handle = await app.enqueue(stopped, {})
        await began.wait()
    row = await database.fetchrow(
        "SELECT data, snoozes FROM hybrid_runner.jobs WHERE id = $1", handle.id
    )
    assert row is not None
    assert (orjson.loads(row["data"] or "null"), row["snoozes"]) == ({"done": 3}, 1)


async def test_an_outcome_that_was_annotated_on_its_way_is_still_that_outcome(dsn: str) -> None:
    app = runner(dsn)

    @app.job("annotated")
    async def annotated(_: Any) -> None:
        try:
            handlers.refuse()
        except Fail as error:
            error.seen_by = "middleware"  # type: ignore[attr-defined]  # as applications do
            error.add_note("at the till")
            raise

    async with working(app):
        job = await outcome(app, "annotated")
    assert (job.state, job.errors[0]["message"]) == (State.FAILED, "no card")


async def test_an_outcome_raised_in_a_task_group_is_that_outcome(dsn: str) -> None:
    app = runner(dsn)

    @app.job("group")
    async def group(_: Any) -> None:
        async def refuse() -> None:
            raise Fail("one of them cannot")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.Event().wait())
            tasks.create_task(refuse())

    async with working(app):
        job = await outcome(app, "group")
    assert (job.state, job.attempt, job.errors[0]["message"]) == (
        State.FAILED,
        1,
        "one of them cannot",
    )


def test_beside_another_exception_an_outcome_hides_nothing() -> None:
    alone = ExceptionGroup("outer", [ExceptionGroup("inner", [Fail("no")])])
    assert outcome_of_exception(alone) == Fail("no")
    beside = outcome_of_exception(ExceptionGroup("all", [Fail("no"), ValueError("odd")]))
    assert isinstance(beside, Raised)
    assert beside.kind == "ExceptionGroup"
    assert "odd" in beside.traceback


async def test_a_raised_outcome_is_no_error_in_traces_and_logs(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hybrid_runner")
    with recording(monkeypatch) as recorded:
        app = runner(dsn, handlers.app.registry)
        async with working(app):
            await outcome(app, "decide", {"what": "snooze"})
    runs = [(span.status.status_code, span.events) for span in recorded.named("run decide")]
    assert runs == [(StatusCode.UNSET, ())] * 2
    assert not [r for r in caplog.records if r.exc_info or r.levelno > logging.INFO]


@pytest.mark.parametrize("value", ALL, ids=repr)
def test_outcomes_are_frozen_values_that_can_be_copied_and_pickled(value: HandlerOutcome) -> None:
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301  # our own
    assert copy.copy(value) == copy.deepcopy(value) == value
    with pytest.raises(type(value)), handlers.note_where():
        raise value
    for change in (setattr, lambda one, name, _: delattr(one, name)):
        with pytest.raises(FrozenInstanceError):
            change(value, value.__match_args__[0], "another")


@pytest.mark.parametrize("value", ALL, ids=repr)
def test_outcomes_have_a_hash_whatever_they_carry(value: HandlerOutcome) -> None:
    assert {value: 1}[copy.deepcopy(value)] == 1


def test_an_outcome_class_with_arguments_of_its_own_can_be_pickled_with_what_was_noted() -> None:
    value: Any = handlers.NoCard(7)
    value.add_note("at the till")
    read = pickle.loads(pickle.dumps(value))  # noqa: S301  # our own
    assert (read, type(read), read.__notes__) == (value, handlers.NoCard, ["at the till"])


def test_the_error_of_a_runner_open_elsewhere_can_be_pickled() -> None:
    read = pickle.loads(pickle.dumps(OpenInAnotherLoop()))  # noqa: S301  # our own
    assert str(read) == str(OpenInAnotherLoop())


def test_whatever_a_handler_may_raise_on_purpose_is_among_its_outcomes() -> None:
    assert set(_Raisable.__subclasses__()) == set(get_args(HandlerOutcome))


TOMORROW = datetime.now(UTC) + timedelta(days=1)


def test_a_snooze_takes_a_time_in_either_place() -> None:
    assert Snooze(TOMORROW) == Snooze(until=TOMORROW) != Snooze("1d")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: Snooze(datetime(2030, 1, 1)), "has no time zone"),  # noqa: DTZ001  # it is what is refused
        (lambda: Snooze(until=datetime(2030, 1, 1)), "has no time zone"),  # noqa: DTZ001
        (lambda: Snooze(until="tomorrow"), "takes a datetime, not 'tomorrow'"),  # type: ignore[call-overload]
        (lambda: Snooze("5s", until=TOMORROW), "a delay or a time"),  # type: ignore[call-overload]
        (lambda: Snooze([5]), r"\[5\] is not a duration"),  # type: ignore[call-overload]
    ],
)
def test_a_snooze_without_a_moment_that_is_clear_is_refused_in_one_line(
    wrong: Any, why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why) as refused:
        wrong()
    assert "\n" not in str(refused.value)
