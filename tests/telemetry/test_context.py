"""F4: whose trace a job is in, and what a handler, its helpers and its follow-ups find as the
current one.
"""

from __future__ import annotations

from typing import Any

import aiohttp
import asyncpg
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry import trace
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.utils import suppress_instrumentation

from hybrid_runner import JobCancelled, JobFailed
from hybrid_runner.storage.connections.connection import Connection
from tests.support import inside
from tests.support.recorded import RecordedSpans, attributes_of, ids, traces
from tests.support.traced import TRACEPARENT, tasks
from tests.support.working import outcome, runner, working
from tests.worker import handlers, memory_handlers


async def test_a_job_that_a_handler_enqueues_carries_on_its_trace(
    dsn: str, recorded: RecordedSpans
) -> None:
    app = tasks(dsn)
    async with working(app) as worker:
        with trace.get_tracer("tests").start_as_current_span("request"):
            await app.enqueue("follow")
        await worker.settled(2)
        await worker.idle()
    request = recorded.one("request")
    assert (
        len(traces(span for span in recorded.all if not span.name.startswith(("claim", "settle"))))
        == 1
    )
    assert recorded.children(request) == ["publish default"]
    assert recorded.children(recorded.one("run follow")) == ["publish default"]


@pytest.mark.parametrize("where", ["loop", "thread", "process"])
async def test_a_job_that_is_to_follow_is_in_the_trace_of_the_attempt_that_said_so(
    dsn: str, recorded: RecordedSpans, where: str
) -> None:
    """B1: wherever its handler ran."""
    app = runner(dsn, memory_handlers.app.registry)
    async with working(app) as worker:
        await app.enqueue(f"then_in_{where}")
        await worker.settled(2)
        await worker.idle()
    assert recorded.children(recorded.one(f"run then_in_{where}")) == ["job add"]


async def test_many_at_once_join_the_callers_trace_or_start_one_each(
    dsn: str, recorded: RecordedSpans
) -> None:
    app = tasks(dsn)
    async with working(app) as worker:
        await app.enqueue_many("note", [{}, {}])
        await worker.settled(2)
        assert len(traces(recorded.named("job note"))) == 2
        with trace.get_tracer("tests").start_as_current_span("request") as span:
            await app.enqueue_many("note", [{}, {}])
        await worker.settled(4)
        await worker.idle()
    assert [ids(root)[0] for root in recorded.named("job note")[2:]] == [
        span.get_span_context().trace_id
    ] * 2
    assert [
        attributes_of(p)["messaging.batch.message_count"] for p in recorded.named("publish default")
    ] == [
        2,
        2,
    ]


@pytest.mark.parametrize("many", [False, True])
async def test_set_local_gives_a_trace_to_all_that_is_enqueued_in_a_transaction(
    many: bool, dsn: str, database: Connection
) -> None:
    """Also through the Python client, where nobody's span is current."""
    app = tasks(dsn)
    async with app, database.transaction():
        await database.execute(f"SET LOCAL hybrid_runner.traceparent = '{TRACEPARENT}'")
        if many:
            await app.enqueue_many("note", [{}, {}], connection=database)
        else:
            await app.enqueue("note", connection=database)
        await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('note')")
    assert {
        row[0] for row in await database.fetch("SELECT traceparent FROM hybrid_runner.jobs")
    } == {TRACEPARENT}


async def test_a_worker_without_a_provider_passes_on_what_came(
    dsn: str, database: Connection
) -> None:
    app = tasks(dsn)
    async with working(app) as worker:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('follow', $1)", TRACEPARENT
        )
        await worker.settled(2)
    assert (
        await database.fetchval("SELECT traceparent FROM hybrid_runner.archive WHERE kind = 'note'")
        == TRACEPARENT
    )


async def test_a_handler_in_a_thread_finds_its_span(dsn: str, recorded: RecordedSpans) -> None:
    app = runner(dsn)

    @app.job("block")
    def block(_: Any) -> None:
        with trace.get_tracer("tests").start_as_current_span("inside"):
            pass

    async with working(app):
        await outcome(app, "block")
    assert recorded.children(recorded.one("run block")) == ["inside"]


async def test_a_worker_that_is_started_within_a_span_does_not_draw_its_jobs_into_it(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    app = tasks(dsn)
    with trace.get_tracer("tests").start_as_current_span("start"):
        async with working(app) as worker:
            await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('note')")
            await worker.settled(1)
            await worker.idle()
    assert ids(recorded.one("start"))[0] not in traces(
        [recorded.one("job note"), recorded.one("run note")]
    )


async def test_a_job_that_a_runner_waits_for_fails_as_before(
    dsn: str, recorded: RecordedSpans
) -> None:
    app = tasks(dsn)
    async with working(app):
        with pytest.raises(JobFailed):
            await (await app.enqueue("raise")).wait(120)
        with pytest.raises(JobCancelled):
            await (await app.enqueue("give_up")).wait(120)
    assert len(recorded.named("publish default")) == 2


async def test_what_a_handler_asks_of_postgres_and_of_the_web_is_recorded_below_its_run(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    """By the instrumentations of asyncpg and the aiohttp client, as they are."""
    app = runner(dsn)

    @app.job("ask")
    async def ask(url: str) -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.fetchval("SELECT 1")
        finally:
            await connection.close()
        async with aiohttp.ClientSession() as session, session.get(url):
            pass

    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(request.headers["traceparent"])
        return web.Response()

    application = web.Application()
    application.router.add_get("/", answer)
    AsyncPGInstrumentor().instrument()  # type: ignore[no-untyped-call]
    AioHttpClientInstrumentor().instrument()
    try:
        async with TestServer(application) as server, working(app):
            await outcome(app, "ask", str(server.make_url("/")))
    finally:
        AsyncPGInstrumentor().uninstrument()  # type: ignore[no-untyped-call]
        AioHttpClientInstrumentor().uninstrument()
    run = recorded.one("run ask")
    assert recorded.children(run) == ["SELECT", "GET"]
    assert heard[0].split("-")[1] == f"{ids(run)[0]:032x}"


async def test_the_workers_own_statements_are_not_drawn_where_asyncpg_is_instrumented(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    """Not those of its start and its end either."""
    app = tasks(dsn)
    async with app:
        AsyncPGInstrumentor().instrument()  # type: ignore[no-untyped-call]
        try:
            async with app.worker() as worker:
                inside.beat_soon(worker)
                with suppress_instrumentation():
                    await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('rest')")
                await worker.settled(1)
                await worker.idle()
        finally:
            AsyncPGInstrumentor().uninstrument()  # type: ignore[no-untyped-call]
    assert {name.split()[0] for name in recorded.names()} == {
        "claim",
        "delay",
        "job",
        "run",
        "settle",
        "wait",
    }


async def test_a_handler_in_a_process_is_in_the_trace_of_its_job(
    dsn: str, recorded: RecordedSpans
) -> None:
    app = runner(dsn, handlers.app.registry)
    async with working(app):
        said = await outcome(app, "where_am_i")
    run = recorded.one("run where_am_i")
    assert said.result == f"{ids(run)[0]:032x}-{ids(run)[1]:016x}"
