"""Jobs of kinds that nobody knows: left to a worker that does, and visible as such."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from pydantic import create_model

from hybrid_runner import Job, Runner, Snooze, Worker
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.storage import kind_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import OTHER
from hybrid_runner.upkeep.duties.unknown_kinds import UnknownKinds
from hybrid_runner.web.pages.health import checks_of
from tests.cli.running import succeeds
from tests.support.waiting import until
from tests.support.working import runner, working

AT_ONCE = timedelta(0)
WORKER = (
    "INSERT INTO hybrid_runner.workers (id, host, pid, version, queues, kinds, heartbeat_at)"
    " VALUES ($1, '', 1, '', $2, $3, now() + $4)"
)


async def lives(
    database: Connection,
    queues: Sequence[str],
    kinds: Sequence[str],
    name: str = "w",
    heard: timedelta = timedelta(0),
) -> None:
    """A worker of these queues that knows these kinds."""
    slots = json.dumps(dict.fromkeys(queues, 1))
    await database.execute(WORKER, name, slots, kinds, heard)


async def due(
    database: Connection, kind: str, queue: str = "default", priority: int = 5, count: int = 1
) -> None:
    """Jobs that have been due for two minutes."""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, queue, priority, run_at)"
        " SELECT $1, $2, $3, now() - interval '2 minutes' FROM generate_series(1, $4)",
        kind,
        queue,
        priority,
        count,
    )


async def found(database: Connection, due_for: timedelta = AT_ONCE) -> list[tuple[object, ...]]:
    """Queue, kind, how many, whether known elsewhere, and what was meant."""
    kinds = await kind_calls.unknown_kinds(database, due_for)
    return [(one.queue, one.kind, one.due, one.elsewhere, one.meant) for one in kinds]


async def test_due_jobs_that_no_live_worker_knows_are_found(database: Connection) -> None:
    """B17"""
    await lives(database, ["default", "images"], ["thumbnail"])
    await kind_calls.declare_kinds(database, [DeclaredKind("thumbnail", "images")])
    await due(database, "thumbnail", "images")
    await due(database, "thumbnial", "images", count=3)
    await due(database, "report", priority=0)
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('later', now() + interval '1 hour')"
    )
    assert await found(database) == [
        ("images", "thumbnial", 3, False, "thumbnail"),
        ("default", "report", 1, False, None),
    ]
    [typo, report] = await kind_calls.unknown_kinds(database, AT_ONCE)
    assert str(typo) == (
        "3 due jobs of kind 'thumbnial' in queue 'images', which no live worker knows:"
        " was 'thumbnail' meant?"
    )
    assert (
        str(report) == "1 due job of kind 'report' in queue 'default', which no live worker knows"
    )
    assert 120 <= report.oldest_due < 180


async def test_a_job_in_a_queue_whose_workers_do_not_know_it_is_found_though_others_do(
    database: Connection,
) -> None:
    """B17: most often a producer left the queue out of a plain INSERT."""
    await lives(database, ["default"], ["report"], "a")
    await lives(database, ["images"], ["thumbnail"], "b")
    await due(database, "thumbnail")
    [one] = await kind_calls.unknown_kinds(database, AT_ONCE)
    assert one.elsewhere
    assert str(one) == (
        "1 due job of kind 'thumbnail' in queue 'default', whose workers do not know it: others do"
    )


async def test_a_kind_is_not_unknown_because_its_queue_has_no_worker_now(
    database: Connection,
) -> None:
    """B17: `queue_workers` says so already."""
    await lives(database, ["default"], ["thumbnail"])
    await due(database, "thumbnail", "images")
    await due(database, "report", "images")
    assert await found(database) == [("images", "report", 1, False, None)]


async def test_the_dead_and_the_silent_know_nothing(database: Connection) -> None:
    await lives(database, ["default"], ["report"], "silent", -timedelta(hours=1))
    await lives(database, ["default"], ["report"], "dead")
    await database.execute("UPDATE hybrid_runner.workers SET dead_at = now() WHERE id = 'dead'")
    await due(database, "report")
    assert await found(database) == [("default", "report", 1, False, None)]


async def test_a_fleet_that_is_being_replaced_warns_of_nothing(database: Connection) -> None:
    """B17: a job must have been due for a minute."""
    await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('report')")
    assert await found(database, timedelta(minutes=1)) == []
    assert await found(database) == [("default", "report", 1, False, None)]


async def test_what_claims_pass_over_is_found_before_any_backlog_and_at_its_end(
    database: Connection,
) -> None:
    """B17: in each lane; what lies in the middle of 5,000 that can run is found when they have."""
    await lives(database, ["default"], ["work"])
    await due(database, "first", priority=3)
    await due(database, "work", priority=3, count=5000)
    await due(database, "last", priority=3)
    await due(database, "other", priority=9)
    assert {kind for _, kind, *_ in await found(database)} == {"first", "last", "other"}


async def test_made_up_queues_and_kinds_do_not_crowd_out_those_of_workers(
    database: Connection,
) -> None:
    await lives(database, ["images"], ["thumbnail"])
    await database.execute("SELECT hybrid_runner.open_queue('images')")
    await due(database, "thumbnial", "images", count=5)
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, queue, run_at) SELECT 'k' || i, 'a' || i,"
        " now() - interval '2 minutes' FROM generate_series(1, 3000) AS i"
    )
    kinds = await found(database)
    assert len(kinds) == 100
    assert kinds[0] == ("images", "thumbnial", 5, False, None)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def app_of(dsn: str) -> Runner:
    app = runner(dsn)

    @app.job("thumbnail", queue="images")
    async def thumbnail(_payload: object) -> None: ...

    return app


def check_of(worker: Worker) -> tuple[str, str]:
    [check] = [check for check in checks_of(worker.status()) if check.name == "kinds"]
    return check.severity, check.reason


async def test_a_kind_that_nobody_knows_is_in_health_metrics_log_and_the_command(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B17: a warning; the worker stays healthy."""
    await due(database, "thumbnial", "images", count=2)
    said = (
        "2 due jobs of kind 'thumbnial' in queue 'images', which no live worker knows:"
        " was 'thumbnail' meant?"
    )
    async with working(app_of(dsn), deaf=True) as worker:
        await until(lambda: worker.status().vitals.unknown_kinds)
        assert check_of(worker) == ("warning", said)
        values = worker.status().metric_values[table.UNKNOWN_KIND_JOBS.name]
        assert values == {("images", "thumbnial"): 2}
        listed = succeeds("kinds", "--dsn", dsn)
        told = json.loads(succeeds("kinds", "--json", "--dsn", dsn))
    assert caplog.messages.count(said) == 1
    first, row, *rest = listed.splitlines()
    assert first.split() == ["KIND", "WORKERS", "QUEUE", "ON", "END", "BUDGETS", "SEEN"]
    assert row.split()[:4] == ["thumbnail", "1", "worker", "images"]
    assert rest == [f"unknown: {said}"]
    assert [kind["name"] for kind in told["kinds"]] == ["thumbnail"]
    assert told["kinds"][0]["payload_schema"] == {}
    assert told["unknown"][0]["due"] == 2
    assert (await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs")) == 2


async def test_without_any_worker_the_command_says_so(dsn: str, database: Connection) -> None:
    assert succeeds("kinds", "--dsn", dsn) == "no worker has declared a kind\n"
    budgets = DeclaredKind("poll", "a", "clean", 120, timedelta(minutes=29), timedelta(hours=2))
    await kind_calls.declare_kinds(database, [budgets])
    row = succeeds("kinds", "--dsn", dsn).splitlines()[1]
    assert "none lives" in row
    assert "120 snoozes, 29m in all, finished within 2h" in row


async def test_what_is_known_again_is_shown_no_more_and_logged_anew_an_hour_later(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B17"""
    clock = Clock()
    duty = UnknownKinds(clock=clock)
    duty.held_until = 1e9
    await due(database, "report")
    for clock.now in (0.0, 20.0, 3599.0):
        await duty.run(database)
    assert len(caplog.messages) == 1
    clock.now = 3601.0
    await duty.run(database)
    assert len(caplog.messages) == 2
    [one] = duty.found
    assert (one.kind, one.due) == ("report", 1)
    await lives(database, ["default"], ["report"])
    await duty.run(database)
    assert duty.found == ()
    assert duty.metric_values() == {table.UNKNOWN_KIND_JOBS.name: {}}


async def test_what_a_holder_found_is_shown_while_it_holds_the_duty_and_is_not_old(
    database: Connection,
) -> None:
    clock = Clock()
    duty = UnknownKinds(clock=clock)
    await due(database, "report")
    assert duty.metric_values() == {}
    duty.held_until = 1000.0
    await duty.run(database)
    assert len(duty.found) == 1
    clock.now = 151.0
    assert len(duty.found) == 0
    await duty.run(database)
    assert len(duty.found) == 1
    duty.end_hold()
    assert (len(duty.found), duty.metric_values()) == (0, {})


async def test_many_made_up_kinds_are_few_series_and_few_lines(
    database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, run_at) SELECT 'k' || i,"
        " now() - interval '2 minutes' FROM generate_series(1, 60) AS i"
    )
    duty = UnknownKinds()
    duty.held_until = float("inf")
    await duty.run(database)
    values = duty.metric_values()[table.UNKNOWN_KIND_JOBS.name]
    assert len(values) == 21
    assert values[OTHER, OTHER] == 40
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == "50 more unknown kinds: see hybrid-runner kinds"


async def test_a_worker_declares_its_kinds_when_it_starts(dsn: str, database: Connection) -> None:
    """B17, B18: with the schema of the payload; and takes nothing back when it ends."""
    app = runner(dsn)

    @app.job("clean-up")
    async def clean_up(_payload: object) -> None: ...

    @app.job(
        "poll",
        queue="slow",
        max_snoozes=120,
        max_duration="29m",
        finish_within="2h",
        on_end="clean-up",
    )
    async def poll(_payload: dict[str, int]) -> None: ...

    async with working(app, deaf=True):
        hook, kind = await kind_calls.list_kinds(database)
        assert (hook.name, hook.queue, hook.on_end, hook.workers) == (
            "clean-up",
            "default",
            None,
            1,
        )
    hook, kind = await kind_calls.list_kinds(database)
    assert (kind.name, kind.queue, kind.on_end, kind.workers) == ("poll", "slow", "clean-up", 0)
    assert (kind.max_snoozes, kind.max_duration, kind.finish_within) == (
        120,
        timedelta(minutes=29),
        timedelta(hours=2),
    )
    assert kind.payload_schema is not None
    assert json.loads(kind.payload_schema)["type"] == "object"


def test_a_type_without_a_schema_and_one_with_too_large_a_one_are_declared_without(
    dsn: str,
) -> None:
    app = runner(dsn)
    names = [f"field_{number}_{'x' * 100}" for number in range(500)]
    large: Any = create_model("Large", **dict.fromkeys(names, (int, 0)))  # type: ignore[call-overload]

    def handler(annotation: object) -> Callable[[Any], Any]:
        async def handle(payload: Any) -> None: ...

        handle.__annotations__["payload"] = annotation
        return handle

    app.job("large")(handler(large))
    app.job("any")(handler(Any))
    declared = {kind.name: kind.payload_schema for kind in app.registry.declared()}
    assert declared == {"large": None, "any": "{}"}


async def test_jobs_of_old_and_new_shape_run_side_by_side_during_a_deploy(
    dsn: str, database: Connection
) -> None:
    """B18: one queue, an old worker and a new one, of which each knows a kind that the other does
    not, and the second takes both shapes of a payload; nothing fails for being old.
    """
    old, new = runner(dsn), runner(dsn)
    ran: list[tuple[str, object]] = []

    @old.job("poll")
    async def old_poll(payload: dict[str, int]) -> None:
        ran.append(("old", payload))

    @new.job("poll-2")
    async def new_poll(payload: dict[str, str], job: Job) -> Snooze | None:
        ran.append(("new", payload))
        return Snooze(0.01) if job.snoozes == 0 else None

    async with working(old) as first, working(new) as second:
        async with Runner(dsn) as producer:
            for n in range(5):
                await producer.enqueue("poll", {"run": n})
                await producer.enqueue("poll-2", {"run": str(n)})
        await first.settled(5)
        await second.settled(5)
        assert first.status().settled == {"completed": 5}
        assert second.status().settled == {"completed": 5, "snooze": 5}
        assert check_of(first)[0] == check_of(second)[0] == "ok"
    assert len(ran) == 15
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0
