"""Jobs that a handler says are to follow: how they are made, in the loop, threads and processes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Fail, Job, NewJob, Snooze, State
from hybrid_runner.storage.connections.connection import Connection
from tests.support.working import outcome, runner, working
from tests.worker import memory_handlers
from tests.worker.memory_handlers import Seen, Task, add

KEY = "key must be a text of 1 to 512 bytes, without NUL or halves of signs"
STORED = "SELECT kind, queue, key, priority, payload, data, timeout FROM hybrid_runner.jobs"


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_follow_up_has_the_queue_of_its_kind_and_what_it_was_given(
    dsn: str, database: Connection, executor: str
) -> None:
    """B1: by handler or by name; stored once this job has completed."""
    app = runner(dsn)

    @app.job("poll", queue="polls")
    async def poll(payload: dict[str, int], job: Job[Task]) -> None: ...

    def start(payload: Any, job: Job) -> str:
        job.then(poll, {"run": 1}, key="poll-1", delay="1h", data=Task(task="t1"))
        job.then("poll", {"run": 2}, data={"task": "t2"}, priority=2, delay="1h")
        return "started"

    async def start_in_loop(payload: Any, job: Job) -> str:
        return start(payload, job)

    app.job("start")(start_in_loop if executor == "async" else start)
    async with working(app, {"default": 2}):
        assert (await outcome(app, "start")).result == "started"
        rows = await database.fetch(f"{STORED} ORDER BY key")
    assert [tuple(row)[:4] for row in rows] == [
        ("poll", "polls", "poll-1", 5),
        ("poll", "polls", None, 2),
    ]
    assert [json.loads(row["payload"]) for row in rows] == [{"run": 1}, {"run": 2}]
    assert [json.loads(row["data"])["task"] for row in rows] == ["t1", "t2"]


@pytest.mark.parametrize("fails", [False, True], ids=["then", "Fail"])
async def test_follow_ups_come_from_processes(
    dsn: str, database: Connection, *, fails: bool
) -> None:
    """B1: which know no other kinds by name; the worker does."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app, {"default": 1}):
        payload = {"fail": True} if fails else {}
        state = State.FAILED if fails else State.COMPLETED
        assert (await outcome(app, "follow_in_process", payload)).state is state
        rows = await database.fetch(f"{STORED} ORDER BY key")
    if fails:
        assert [tuple(row)[:3] for row in rows] == [("add", "sums", "undo")]
        assert (json.loads(rows[0]["payload"]), rows[0]["timeout"].seconds) == ([3, 4], 300)
    else:
        assert [tuple(row)[:4] for row in rows] == [
            ("look_in_loop", "default", "k", 3),
            ("add", "sums", None, 5),
        ]
        assert json.loads(rows[0]["data"]) == {"looks": 2, "names": []}


async def test_nothing_follows_an_attempt_that_does_not_end_the_job(
    dsn: str, database: Connection
) -> None:
    """B1: the handler is called again, and says it again; and none of it if the job fails."""
    app = runner(dsn)

    @app.job("again", retry=memory_handlers.AT_ONCE, max_attempts=2)
    async def again(_: Any, job: Job) -> Any:
        job.then(add, [job.snoozes, job.attempt])
        if job.snoozes < 2:
            return Snooze(0.01)
        if job.attempt == 1:
            raise RuntimeError("not yet")
        return Fail("never")

    async with working(app, {"default": 1}):
        assert (await outcome(app, "again")).state is State.FAILED
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


async def test_a_follow_up_that_cannot_be_is_refused_at_the_call(dsn: str) -> None:
    app, said = runner(dsn, memory_handlers.app.registry), list[str]()

    @app.job("wrong")
    async def wrong(_: Any, job: Job) -> None:
        for call in (
            lambda: job.then(add, ["one"]),  # type: ignore[misc]
            lambda: job.then("no kind!"),
            lambda: job.then("add", [1], key=""),
            lambda: job.then("add", [1], connection=None),  # type: ignore[call-overload]
            lambda: job.then(add, [1], max_attempts=50),
            lambda: job.then("add", [1], key="a\x00b"),
            lambda: job.then("add", [1], key="\ud800"),
            lambda: job.then("add", [1], run_at=datetime(1, 1, 1, tzinfo=UTC)),
            lambda: [job.then("bulk", "x" * 1000_000) for _ in range(5)],
            lambda: Fail("no", then="add"),  # type: ignore[arg-type]
        ):
            with pytest.raises(ConfigurationError) as caught:
                call()
            said.append(str(caught.value))

    async with working(app):
        await outcome(app, "wrong")
    assert [text if text.startswith("add: ") else text.split(":")[0] for text in said] == [
        "the payload does not fit add",
        "'no kind!' is not a kind",
        KEY,
        "a job that is stored with the end of another one has no option 'connection'",
        "kind 'add' allows a max_attempts of 5 at most, not 50",
        KEY,
        KEY,
        "add: 0001-01-01 00:00:00+00:00 is not between 1971 and 9998",
        "more than 1,000 jobs, or 2,097,152 bytes of them, cannot follow one attempt",
        "Fail(…, then=…) takes jobs, such as clean_up.new(payload), not 'add'",
    ]


@pytest.mark.parametrize(
    ("then", "says"),
    [
        (NewJob("add", "[1"), "the payload is not JSON"),
        (NewJob("add", "[]", max_attempts=50), "allows a max_attempts of 5 at most"),
        (NewJob("add", "[]", key="x" * 513), KEY),
        (NewJob("add", "[]", key="\ud800"), KEY),
        (NewJob("add", '["\ud800"]'), "the payload is not JSON"),
        (NewJob("add", "[]", data="[1"), "the data is not JSON"),
        (NewJob("add", "[]", data='"\\u0000"'), "the data contains a NUL character"),
        (NewJob("add", "[]", delay=timedelta.max), "is out of range: use zero to ten years"),
        (NewJob("add", "[]", delay=timedelta(-1)), "is out of range: use zero to ten years"),
        (NewJob("add", "[]", finish_by=datetime.max.replace(tzinfo=UTC)), "between 1971 and 9998"),
        (NewJob("add", "[]", traceparent="\x00"), "its traceparent is none of W3C's"),
        (NewJob("add", "[]", max_snoozes=-1), "max_snoozes must be 0 to"),
    ],
)
async def test_a_job_of_the_handler_s_own_making_is_checked_before_it_is_stored(
    dsn: str, then: NewJob, says: str
) -> None:
    """It would hold up the outcomes of others; the job fails all the same, with both reasons."""
    app = runner(dsn, memory_handlers.app.registry)

    @app.job("fail")
    async def fail(_: Any) -> Fail:
        return Fail("no", then=[then])

    async with working(app):
        job = await outcome(app, "fail")
    assert (job.state, job.errors[0]["type"]) == (State.FAILED, "OutcomeRefused")
    assert job.errors[0]["message"].startswith("no; and what should follow: ")
    assert says in job.errors[0]["message"]


@pytest.mark.parametrize("executor", ["async", "process"])
async def test_no_more_jobs_follow_a_failure_than_an_end(
    dsn: str, database: Connection, executor: str
) -> None:
    """B11: the job fails all the same, with both reasons."""
    app = runner(dsn, memory_handlers.app.registry)

    @app.job("fail")
    async def fail(_: Any) -> Fail:
        return Fail("no", then=[add.new([])] * 1001)

    async with working(app):
        job = await outcome(app, "fail" if executor == "async" else "fail_with_many")
    assert (job.state, job.errors[0]["type"], job.attempt) == (State.FAILED, "OutcomeRefused", 1)
    assert "more than 1,000 jobs, or 2,097,152 bytes" in job.errors[0]["message"]
    assert job.errors[0]["message"].startswith("no; and what should follow: ")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


def test_a_kind_makes_jobs_that_are_not_stored_yet() -> None:
    """As `enqueue_many` and `Fail(…, then=…)` take them."""
    job = add.new([1, 2], key="k", delay="2s", data={"seen": 1})
    assert (job.kind, job.payload, job.queue, job.key, job.data) == (
        "add",
        "[1,2]",
        "sums",
        "k",
        '{"seen":1}',
    )
    assert job.delay is not None
    assert job.delay.total_seconds() == 2


def test_a_memory_has_the_type_of_the_signature_or_of_the_decorator() -> None:
    kinds = memory_handlers.app.registry
    assert [kinds[f"look_in_{where}"].memory_type for where in ("loop", "thread")] == ["Seen"] * 2
    assert kinds["look_in_thread"].read_memory(None) == Seen()
    assert kinds["start_in_loop"].memory is None
