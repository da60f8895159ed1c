"""B12: jobs that an application's own tables say there should be are restored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from hybrid_runner import (
    ConfigurationError,
    Confirmations,
    DatabaseError,
    Job,
    Runner,
    Snooze,
)
from hybrid_runner.handlers.reconciler import Reconciler
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.upkeep.duties.reconcile import Reconcile
from tests.support.waiting import equals, until, until_fetched
from tests.support.working import runner, working

RUNS = """
    CREATE TABLE public.runs (run text, sql text, task text, done boolean NOT NULL DEFAULT false)
"""
LOST = """
    SELECT r.run, r.sql, jsonb_build_object('task', r.task) AS data -- what is not done
    FROM public.runs AS r
    WHERE r.task IS NOT NULL AND NOT r.done -- and has begun
"""
LIVE = "SELECT key, payload ->> 'sql', data ->> 'task' FROM hybrid_runner.jobs ORDER BY key"


class Query(BaseModel):
    run: str
    sql: str


def an_app(dsn: str, query: str = LOST, **options: Any) -> tuple[Runner, Reconciler]:
    app = runner(dsn, heartbeat=0.2)

    @app.job("poll", queue="shell")
    async def poll(_: Query, job: Job) -> Snooze:
        return Snooze("1h")

    @app.reconcile("10s", **{"kind": poll, "key": "poll-{run}", **options})
    def lost_polls() -> str:
        return query

    return app, lost_polls


@pytest.fixture
async def runs(database: Connection) -> Connection:
    await database.execute(RUNS)
    return database


async def begin(database: Connection, *runs: str, task: str | None = "t") -> None:
    await database.executemany(
        "INSERT INTO public.runs (run, sql, task) VALUES ($1, 'SELECT ' || $1, $2)",
        [(run, task) for run in runs],
    )


async def round_of(database: Connection, reconciler: Reconciler, rounds: int = 1) -> float:
    """How many jobs were restored."""
    repairs = Counter(table.RECONCILER_REPAIRS)
    duty = Reconcile(reconciler, repairs)
    for _ in range(rounds):
        await duty.run(database)
    return repairs.read()[reconciler.name,]


async def live(database: Connection) -> list[tuple[str, str, str]]:
    return [tuple(row) for row in await database.fetch(LIVE)]


async def test_a_run_without_a_live_follow_up_gets_one_again(dsn: str, runs: Connection) -> None:
    """B12: with its payload, its memory, its key and its kind's queue; the others stay as they
    are.
    """
    app, reconciler = an_app(dsn)
    await begin(runs, "1", "2")
    await begin(runs, "3", task=None)
    async with app:
        await app.enqueue("poll", {"run": "1", "sql": "mine"}, key="poll-1", data={"task": "own"})
    assert await round_of(runs, reconciler, rounds=2) == 1
    assert await live(runs) == [("poll-1", "mine", "own"), ("poll-2", "SELECT 2", "t")]
    assert await runs.fetchval("SELECT queue FROM hybrid_runner.jobs WHERE key = 'poll-2'") == (
        "shell"
    )


async def test_a_follow_up_that_was_lost_is_restored_by_the_fleet(
    dsn: str, runs: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B12: a duty of the fleet, counted and logged."""
    caplog.set_level("INFO", "hybrid_runner.upkeep")
    app, _ = an_app(dsn)
    await begin(runs, "7")
    async with working(app) as worker:
        await until_fetched(runs, "SELECT snoozes FROM hybrid_runner.jobs", 1)
        # Its job may have run before whoever restored it has counted it.
        await until(
            lambda: worker.status().metric_values[table.RECONCILER_REPAIRS.name],
            equals({("lost_polls",): 1}),
        )
    duty = "SELECT every::text, holder LIKE $1 FROM hybrid_runner.duties WHERE name = $2"
    [row] = await runs.fetch(duty, f"{worker.id} %", "reconcile:poll:lost_polls")
    assert tuple(row) == ("00:00:10", True)
    assert [line for line in caplog.messages if line.startswith("reconciler")] == [
        "reconciler lost_polls: restored 1 jobs of poll: poll-7"
    ]


async def test_a_duty_of_the_applications_own_is_given_to_one_worker_in_its_period(
    dsn: str, runs: Connection
) -> None:
    """B12: the second worker is not given what the first has done."""
    await begin(runs, "7")
    async with working(an_app(dsn)[0]), working(an_app(dsn)[0]):
        await until_fetched(runs, "SELECT count(*) FROM hybrid_runner.jobs", 1)
        holder = "SELECT holder FROM hybrid_runner.duties WHERE name LIKE 'reconcile:%'"
        first = await runs.fetchval(holder)
        beats = "SELECT count(*) FROM hybrid_runner.workers WHERE heartbeat_at > $1"
        now = await runs.fetchval("SELECT clock_timestamp()")
        await until(lambda: runs.fetchval(beats, now), lambda count: count == 2)
        assert await runs.fetchval(holder) == first


async def test_a_new_period_is_that_of_the_code(dsn: str, runs: Connection) -> None:
    """B12"""
    async with working(an_app(dsn)[0]):
        pass
    app = runner(dsn)

    @app.job("poll")
    async def poll(_: Query) -> None: ...

    @app.reconcile("5m", kind=poll, key="poll-{run}")
    def lost_polls() -> str:
        return LOST

    async with working(app):
        every = "SELECT every::text FROM hybrid_runner.duties WHERE name LIKE 'reconcile:%'"
        assert await runs.fetchval(every) == "00:05:00"


async def test_one_round_restores_so_many_and_the_next_ones_the_rest(
    dsn: str, runs: Connection
) -> None:
    """B12"""
    _, reconciler = an_app(dsn, most=3)
    await begin(runs, *map(str, range(8)))
    assert await round_of(runs, reconciler) == 3
    assert await round_of(runs, reconciler, rounds=2) == 5
    assert len(await live(runs)) == 8


async def test_rows_of_which_no_job_can_be_made_keep_no_others_from_their_turn(
    dsn: str, runs: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B12: one line says how many, and what is wrong with one."""
    _, reconciler = an_app(dsn)
    await runs.execute("INSERT INTO public.runs (run, task) VALUES ('bad', 't')")
    await begin(runs, "good")
    assert await round_of(runs, reconciler) == 1
    [line] = caplog.messages
    assert line == (
        "reconciler lost_polls: 1 rows cannot become jobs of poll: poll-bad: the payload does not"
        " fit poll: sql: Input should be a valid string"
    )


async def test_a_row_without_a_value_for_its_key_becomes_no_job(
    dsn: str, runs: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """B12: all such rows would share one key."""
    _, reconciler = an_app(dsn, "SELECT NULL AS run, 'x' AS sql", key="poll-{run}-{task}")
    assert await round_of(runs, reconciler) == 0
    assert caplog.messages[0].endswith("its key is made of columns that have no value: run, task")
    assert await live(runs) == []


async def test_keys_are_made_of_several_columns_and_of_numbers(dsn: str, runs: Connection) -> None:
    """B12"""
    query = "SELECT 'a' AS run, 'b' AS sql, 7 AS number"
    _, reconciler = an_app(dsn, query, key="{{{run}}}-{number}")
    assert await round_of(runs, reconciler) == 1
    assert [key for key, *_ in await live(runs)] == ["{a}-7"]


async def test_a_key_that_an_open_transaction_holds_holds_up_no_others(
    dsn: str,
    runs: Connection,
    another: Callable[[], Awaitable[Connection]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B12: any producer may hold one."""
    _, reconciler = an_app(dsn)
    await begin(runs, *map(str, range(9)))
    holder = await another()
    await holder.execute(
        "BEGIN; INSERT INTO hybrid_runner.jobs (kind, key) VALUES ('other', 'poll-4')"
    )
    await runs.execute("SET lock_timeout = '50ms'")
    assert await round_of(runs, reconciler) == 8
    [line] = caplog.messages
    assert line == (
        "reconciler lost_polls: open transactions hold keys of jobs of poll: poll-4; again at its"
        " next turn"
    )
    await holder.execute("ROLLBACK")
    assert await round_of(runs, reconciler) == 1


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELECT 1 AS run) AS found; DROP TABLE public.runs; --", "syntax error"),
        ("WITH gone AS (DELETE FROM public.runs RETURNING *) SELECT * FROM gone", "top level"),
        ("DELETE FROM public.runs RETURNING *", "syntax error"),
    ],
)
async def test_a_query_that_cannot_run_or_would_write_is_refused_and_changes_nothing(
    dsn: str, runs: Connection, query: str, said: str
) -> None:
    """B12"""
    _, reconciler = an_app(dsn, query)
    await begin(runs, "1")
    with pytest.raises(DatabaseError, match=said):
        await round_of(runs, reconciler)
    assert await runs.fetchval("SELECT count(*) FROM public.runs") == 1


async def test_a_query_can_name_its_columns_as_it_likes(dsn: str, runs: Connection) -> None:
    """B12: none of ours is in its way."""
    query = """SELECT 'a' AS run, 'b' AS sql, 1 AS found, 2 AS columns, 3 AS key, 4 AS "Data" """
    _, reconciler = an_app(dsn, query)
    assert await round_of(runs, reconciler) == 1


class Poll(BaseModel):
    task: str
    idle: Confirmations = Confirmations()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("jsonb_build_object('task', 't')", None),
        ("jsonb_build_object('task', 7)", "the data does not fit poll: task: Input should be a"),
        ("7", "the data does not fit poll: data: Input should be"),
        ("NULL", "poll"),
    ],
)
async def test_memory_that_has_a_type_is_made_of_the_column_data(
    dsn: str, runs: Connection, caplog: pytest.LogCaptureFixture, data: str, said: str | None
) -> None:
    """B3, B12: the first look finds it as if the job had been there all the time."""
    app = runner(dsn)

    @app.job("poll", data=Poll)
    async def poll(_: Query, job: Job[Poll]) -> None: ...

    @app.reconcile("10s", kind=poll, key="poll-{run}")
    def lost_polls() -> str:
        return f"SELECT 'a' AS run, 'b' AS sql, {data} AS data"

    assert await round_of(runs, lost_polls) == (said is None)
    if said is None:
        stored = await runs.fetchval("SELECT data -> 'idle' ->> 'seen' FROM hybrid_runner.jobs")
        assert stored == "0"
    else:
        [line] = caplog.messages
        assert said in line
        assert "\n" not in line


async def test_memory_of_json_null_is_none(dsn: str, runs: Connection) -> None:
    """B12"""
    query = "SELECT 'a' AS run, 'b' AS sql, jsonb 'null' AS data"
    _, reconciler = an_app(dsn, query)
    assert await round_of(runs, reconciler) == 1
    assert await runs.fetchval("SELECT data IS NULL FROM hybrid_runner.jobs")


def test_calling_a_reconciler_gives_its_query() -> None:
    reconciler = an_app("postgresql://nowhere", " SELECT 1 AS run;\n")[1]
    assert reconciler() == "SELECT 1 AS run"


@pytest.mark.parametrize(
    ("every", "options", "said"),
    [
        ("5s", {}, "reconciler 'lost': every must be 10 s to 1 day, not 0:00:05"),
        ("2d", {}, "reconciler 'lost': every must be 10 s to 1 day, not 2 days, 0:00:00"),
        ("1m", {"key": "poll"}, "reconciler 'lost': key must name a column of the query in braces"),
        ("1m", {"key": "poll-{}"}, "reconciler 'lost': key must name a column"),
        ("1m", {"key": "poll-{run!r}"}, "reconciler 'lost': key must name a column"),
        ("1m", {"key": "poll-{run.id}"}, "reconciler 'lost': key must name a column"),
        ("1m", {"key": "poll-{run"}, "reconciler 'lost': key must name a column"),
        ("1m", {"key": 7}, "reconciler 'lost': key must name a column"),
        ("1m", {"most": 0}, "reconciler 'lost': most must be 1 to 10,000, not 0"),
        ("1m", {"most": True}, "reconciler 'lost': most must be 1 to 10,000, not True"),
        ("1m", {"kind": "poll"}, "reconciler 'lost': kind must be a handler of @app.job"),
        ("x", {}, "'x' is not a duration"),
    ],
)
def test_a_reconciler_that_cannot_be_is_refused_at_its_decorator(
    every: str, options: dict[str, Any], said: str
) -> None:
    app = runner("postgresql://nowhere")

    @app.job("poll")
    async def poll(_: Query) -> None: ...

    def lost() -> str:
        return "SELECT 1 AS run"

    with pytest.raises(ConfigurationError) as refused:
        app.reconcile(every, **{"kind": poll, "key": "poll-{run}", **options})(lost)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("returned", [None, "", " ; "])
def test_a_function_that_returns_no_query_is_refused(returned: Any) -> None:
    with pytest.raises(ConfigurationError, match="must return the text of a query"):
        an_app("postgresql://nowhere", returned)


def test_a_function_that_wants_arguments_is_refused() -> None:
    app = an_app("postgresql://nowhere")[0]
    poll = app.registry["poll"]

    def wants(run: str) -> str:
        return run

    with pytest.raises(ConfigurationError, match="'wants': it is called without arguments"):
        app.reconcile("1m", kind=poll, key="{run}")(wants)  # type: ignore[arg-type]

    async def later() -> str:
        return "SELECT 1"

    with pytest.raises(ConfigurationError, match="'later': write it as a plain def"):
        app.reconcile("1m", kind=poll, key="{run}")(later)  # type: ignore[arg-type]


def test_two_reconcilers_of_one_name_are_refused() -> None:
    app, reconciler = an_app("postgresql://nowhere")

    def lost_polls() -> str:
        return "SELECT 1 AS run"

    with pytest.raises(ConfigurationError, match="there are two reconcilers 'lost_polls'"):
        app.reconcile("1m", kind=reconciler.kind, key="poll-{run}")(lost_polls)
