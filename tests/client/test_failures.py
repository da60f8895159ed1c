"""What `handle.wait()` raises for jobs that did not complete."""

from __future__ import annotations

import pickle

import pytest

from hybrid_runner import (
    Cancel,
    ConfigurationError,
    Fail,
    JobCancelled,
    JobFailed,
    Retry,
    State,
)
from hybrid_runner.model import answers
from hybrid_runner.model.jobs import JobStatus
from tests.support.working import runner, working


async def test_a_failure_carries_its_job_and_its_error(dsn: str) -> None:
    app = runner(dsn)

    @app.job("lookup", max_attempts=2)
    async def lookup(payload: dict[str, str]) -> Retry | str:
        return payload["customer"] if "customer" in payload else Retry(0, "not there yet")

    @app.job("once", max_attempts=1)
    async def once(payload: dict[str, str]) -> str:
        return payload["customer"]

    async with working(app):
        first, second = await app.enqueue(lookup, {}), await app.enqueue(once, {})
        with pytest.raises(JobFailed) as tried:
            await first.wait(120)
        with pytest.raises(JobFailed) as failed:
            await second.wait(120)
    error = failed.value
    assert (error.job_id, error.kind, error.error_type, error.message, error.attempts) == (
        second.id,
        "once",
        "KeyError",
        "'customer'",
        1,
    )
    assert str(error) == f"job {second.id} (once) failed: KeyError: 'customer'"
    assert (tried.value.error_type, tried.value.attempts) == ("Retry", 2)
    assert str(tried.value) == f"job {first.id} (lookup) failed: not there yet"


async def test_a_cancelled_job_carries_its_reason(dsn: str) -> None:
    app = runner(dsn)

    @app.job("stop")
    async def stop(payload: dict[str, str]) -> Cancel:
        return Cancel("not today")

    async with working(app):
        handle = await app.enqueue("stop", {})
        with pytest.raises(JobCancelled, match="was cancelled: not today") as cancelled:
            await handle.wait(120)
    error = cancelled.value
    assert (error.job_id, error.kind, error.reason) == (handle.id, "stop", "not today")


@pytest.mark.parametrize(
    ("error_type", "message", "says"),
    [
        ("ValueError", "too bad", "ValueError: too bad"),
        ("Timeout", "Timeout", "Timeout"),
        ("ValueError", "", "ValueError"),
        ("Fail", "there is no way", "there is no way"),
        ("Fail", "", "Fail"),
        ("", "", "no reason was recorded"),
    ],
)
def test_a_failure_says_its_type_and_its_message(error_type: str, message: str, says: str) -> None:
    assert str(JobFailed(7, "slow", error_type, message, 1)) == f"job 7 (slow) failed: {says}"


@pytest.mark.parametrize(
    "error", [JobFailed(7, "k", "ValueError", "bad", 3), JobCancelled(7, "k", "")]
)
def test_what_a_wait_raises_can_be_sent_to_another_process(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("errors", [None, [], {}, ["odd"], "odd", [{"at": "now"}]])
def test_errors_that_somebody_wrote_by_sql_do_no_harm(errors: object) -> None:
    status = JobStatus(7, "slow", State.FAILED, None, errors, None)
    assert (status.error_type, status.error_message) == ("", "")


async def test_a_handle_with_its_handler_knows_the_result(dsn: str) -> None:
    app = runner(dsn)

    @app.job("tuple")
    async def pair(payload: int) -> tuple[int, int]:
        return payload, payload

    @app.job("other")
    async def other(payload: int) -> Fail | int:
        return payload

    elsewhere = runner(dsn)
    async with working(app), elsewhere:
        job = (await elsewhere.enqueue("tuple", 3)).id
        assert await elsewhere.handle(job, pair).wait(120) == (3, 3)
        assert await elsewhere.handle(job).wait(120) == [3, 3]
        with pytest.raises(ConfigurationError, match=f"job {job} is a 'tuple', not a 'other'"):
            await elsewhere.handle(job, other).wait(120)


def test_answers_are_words_of_the_package() -> None:
    assert {name for name in vars(answers) if name.endswith("Answer")} == {
        "AmendAnswer",
        "CancelAnswer",
        "EnqueueAnswer",
        "RetryAnswer",
    }
