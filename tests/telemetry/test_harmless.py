"""F4: whatever tracing meets, the jobs go on."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult
from opentelemetry.trace import StatusCode

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.tracing.spans import LONGEST, RunSpan, readable
from tests.support import inside
from tests.support.recorded import RecordedSpans, attributes_of, recording
from tests.support.traced import tasks
from tests.support.waiting import until
from tests.support.working import outcome, working


class Broken(SpanProcessor):
    """Somebody's own, that expects more than it gets."""

    def on_end(self, span: ReadableSpan) -> None:
        raise KeyError(span.name)


async def test_a_processor_that_fails_costs_no_result(
    monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    app = tasks(dsn)

    @app.job("answer")
    async def answer(_: Any) -> int:
        return 7

    async with working(app) as worker:
        await inside.ask_claims(
            worker, "INSERT INTO hybrid_runner.jobs (kind) VALUES ('answer'), ('rest')"
        )
        await worker.settled(2)
        assert worker.status().settled == {"completed": 2, "snooze": 1, "retry": 1}


class Moody(Sampler):
    """Decides once, and never again."""

    def __init__(self) -> None:
        self.asked = 0

    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        self.asked += 1
        if self.asked % 2:
            raise RuntimeError("not now")
        return ALWAYS_ON.should_sample(*args, **kwargs)

    def get_description(self) -> str:
        return "Moody"


async def test_a_sampler_that_fails_costs_no_job(
    monkeypatch: pytest.MonkeyPatch, dsn: str, database: Connection
) -> None:
    with recording(monkeypatch, Moody()):
        async with working(tasks(dsn)) as worker:
            await database.execute(
                "INSERT INTO hybrid_runner.jobs (kind) SELECT 'rest' FROM generate_series(1, 5)"
            )
            await worker.settled(5)
            await worker.idle()
            assert worker.status().pending_settlements == 0


async def test_ids_that_nobody_gives_out_are_drawn_as_well(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    async with working(tasks(dsn)) as worker:
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (id, kind) OVERRIDING SYSTEM VALUE VALUES (-5, 'rest')"
        )
        await worker.settled(1)
        await worker.idle()
    assert attributes_of(recorded.one("job rest"))["messaging.message.id"] == "-5"
    assert len(recorded.named("run rest")) == 3


async def test_an_error_that_cannot_be_encoded_is_recorded_all_the_same(
    dsn: str, recorded: RecordedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(
        logging.CRITICAL, "hybrid_runner.worker"
    )  # pytest-xdist cannot send half a character
    app = tasks(dsn)

    @app.job("open", max_attempts=1)
    async def open_it(_: Any) -> None:
        raise ValueError("no such file: \udcff\x00" + "x" * 5_000_000)

    async with working(app):
        await outcome(app, "open")
    assert len(encode_spans(recorded.all).SerializeToString()) < 100_000
    assert recorded.one("run open").status.status_code is StatusCode.ERROR


def test_what_a_handler_puts_on_its_span_can_always_be_sent() -> None:
    run = RunSpan("run note", 1, 2, {})
    run.set_attribute("surrogate\udcff", "\udcff")
    run.set_attribute("long", "x" * 10 * LONGEST)
    run.set_attribute("mixed", [1, "2"])  # type: ignore[arg-type]
    run.set_attribute("object", object())  # type: ignore[arg-type]
    run.set_attribute("numbers", (1, 2))
    run.add_event("\udcff", {"\udcff": "\udcff"}, timestamp=-1)
    run.add_event("later", timestamp=1.5)  # type: ignore[arg-type]
    run.update_name("\udcff")
    run.set_status(StatusCode.ERROR, "\udcff")
    over = run.finish()
    assert {name: type(value) for name, value in over.attributes.items()} == {
        "surrogate?": str,
        "long": str,
        "numbers": list,
    }
    assert len(str(over.attributes["long"])) == LONGEST
    encode_spans([readable(over, Resource({}))]).SerializeToString()


def test_what_comes_after_the_end_changes_nothing() -> None:
    run = RunSpan("run note", 1, 2, {"a": 1})
    over = run.finish()
    run.set_attribute("b", 2)
    run.add_event("late")
    run.set_attribute("a", 3)
    assert (dict(over.attributes), list(over.events)) == ({"a": 1}, [])


async def test_a_job_of_a_dead_worker_that_is_cancelled_did_not_wait_all_the_time(
    dsn: str, database: Connection, recorded: RecordedSpans
) -> None:
    async with working(tasks(dsn)) as worker:
        await database.execute("SELECT hybrid_runner.pause('default')")
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind) VALUES ('note') RETURNING id"
        )
        async with database.transaction():  # the worker must not rescue it in between
            await database.execute(
                "UPDATE hybrid_runner.jobs SET state = 'running', attempt = 1, claim = 1,"
                " worker_id = 'long gone', started_at = now()"
            )
            assert await database.fetchval("SELECT hybrid_runner.cancel($1)", job) == "cancelled"
        inside.beat_soon(worker)
        await until(lambda: recorded.named("job note"))
    assert recorded.children(recorded.one("job note")) == []
