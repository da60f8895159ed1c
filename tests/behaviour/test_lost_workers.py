"""Workers that are killed, frozen, or held up by a handler: real processes, real signals."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import COMMAND, ROOT, WorkerProcess, environment, worker
from tests.support.collector import Collector
from tests.support.outside import missing
from tests.support.pages import browser
from tests.support.ports import free_port
from tests.support.waiting import until, until_fetched

LEASE = 2.0
PATIENT_LEASE = 10.0
BEATS = {"HYBRID_RUNNER_HEARTBEAT": "500ms"}
"""Beside a lease that is much longer: for a worker that must not be declared dead, however busy the
machine is.
"""
PATIENT = {"HYBRID_RUNNER_LEASE": "60s"} | BEATS
APP = "tests.behaviour.lost_app:app"


@pytest.fixture(autouse=True)
async def runs(database: Connection) -> None:
    await database.execute(
        "CREATE TABLE public.runs (job_id bigint, pid int, what text, at timestamptz DEFAULT"
        " clock_timestamp())"
    )


@asynccontextmanager
async def a_worker(dsn: str, *options: str, **settings: str) -> AsyncIterator[WorkerProcess]:
    """A process that hears rings."""
    given = {
        "HYBRID_RUNNER_DSN": dsn,
        "HYBRID_RUNNER_LEASE": str(LEASE),
        "HYBRID_RUNNER_LOG_LEVEL": "info",
    } | settings
    async with worker(APP, *options, cwd=ROOT, **given) as process:
        await process.says("listening on")
        yield process


async def insert(
    database: Connection, kind: str, count: int = 1, payload: object = 600
) -> list[int]:
    """Jobs that do not end by themselves, unless the payload says so."""
    rows = await database.fetch(
        "INSERT INTO hybrid_runner.jobs (kind, payload) "
        "SELECT $1, $2::jsonb FROM generate_series(1, $3::int) RETURNING id",
        kind,
        json.dumps(payload),
        count,
    )
    return [row[0] for row in rows]


BEGAN = "SELECT count(DISTINCT job_id) FROM public.runs WHERE what = 'began'"
COMPLETED = "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'completed'"
SILENT = (
    "SELECT dead_at - heartbeat_at AS until_dead, lease FROM hybrid_runner.workers"
    " WHERE dead_at IS NOT NULL"
)


async def test_the_jobs_of_a_killed_worker_run_again_once_its_lease_has_ended(
    dsn: str, database: Connection
) -> None:
    """D5: SIGKILL with 50 running jobs; all are run again by another, charged, within the lease and
    5 s.
    """
    async with a_worker(dsn) as doomed:
        await insert(database, "once_long", 50)
        await until_fetched(database, BEGAN, 50)
        async with a_worker(dsn):
            doomed.process.kill()
            await until_fetched(database, COMPLETED, 50)
            # It was the lease that ended, not a luckier accident.
            [silent] = await database.fetch(SILENT)
            assert silent["until_dead"] >= silent["lease"]
    attempts = await database.fetch(
        "SELECT DISTINCT attempt, result #>> '{}' AS result FROM hybrid_runner.archive"
    )
    assert [tuple(row) for row in attempts] == [(2, "attempt 2")]
    assert await database.fetchval("SELECT count(*) FROM public.runs WHERE what = 'ended'") == 50


async def test_a_worker_that_starts_rescues_from_the_one_before_it(
    dsn: str, database: Connection
) -> None:
    """There is nobody else: whoever is started next does it."""
    async with a_worker(dsn) as doomed:
        await insert(database, "once_long", 5)
        await until_fetched(database, BEGAN, 5)
        doomed.process.kill()
        await doomed.process.wait()
    async with a_worker(dsn):
        await until_fetched(database, COMPLETED, 5)


async def test_a_worker_that_comes_back_under_its_name_takes_up_its_jobs_at_once(
    dsn: str, database: Connection
) -> None:
    """A6: a stateful set gives a new process the name of the dead one; no lease has to end."""
    named = {"WORKER_ID": "pod-0", "HYBRID_RUNNER_LEASE": "5m"}
    async with a_worker(dsn, **named) as doomed:
        await insert(database, "once_long", 5)
        await until_fetched(database, BEGAN, 5)
        doomed.process.kill()
        await doomed.process.wait()
    async with a_worker(dsn, **named):
        await until_fetched(database, COMPLETED, 5)
    assert await database.fetchval("SELECT DISTINCT attempt FROM hybrid_runner.archive") == 2


async def test_a_stop_hands_jobs_to_others_uncharged_and_soon(
    dsn: str, database: Connection
) -> None:
    """D6: SIGTERM with a grace that is too short."""
    async with a_worker(dsn, HYBRID_RUNNER_GRACE="100ms", **PATIENT) as leaving:
        await insert(database, "once_long", 20, payload=2)
        await until_fetched(database, BEGAN, 20)
        async with a_worker(dsn, **PATIENT):
            assert await leaving.ends() == 0
            await until_fetched(
                database, "SELECT count(*) FROM hybrid_runner.jobs WHERE attempt > 1", 0
            )
            await until_fetched(database, COMPLETED, 20)
    assert await database.fetchval("SELECT max(attempt) FROM hybrid_runner.archive") == 1


async def test_a_worker_that_was_frozen_past_its_lease_overwrites_nothing(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """SIGSTOP, then SIGCONT: it finds itself declared dead, ends what it ran, and goes on under
    another name.
    """
    ends = tmp_path / "ends"
    async with a_worker(dsn) as frozen:
        async with a_worker(dsn) as other:
            other.process.send_signal(
                signal.SIGSTOP
            )  # so that it is the first one that takes the job
            [job] = await insert(database, "once_until", payload=str(ends))
            await until_fetched(database, BEGAN, 1)
            frozen.process.send_signal(signal.SIGSTOP)
            other.process.send_signal(signal.SIGCONT)
            await until_fetched(database, COMPLETED, 1)
            ends.touch()  # its own outcome comes late
            frozen.process.send_signal(signal.SIGCONT)
            await frozen.says("was declared dead although it lives")
            await frozen.says("worker re-registered")
            assert await other.ends() == 0
        row = await database.fetchrow(
            "SELECT attempt, result #>> '{}' AS result FROM hybrid_runner.archive WHERE id = $1",
            job,
        )
        assert row is not None
        assert tuple(row) == (2, "attempt 2")
        assert not [
            line for line in frozen.lines if "has stood still" in line["message"]
        ]  # no handler held it up
        # It works on: under a name that is alive.
        await insert(database, "long", payload=0)
        await until_fetched(database, COMPLETED, 2)
        name = await database.fetchval(
            "SELECT worker_id FROM hybrid_runner.archive ORDER BY id DESC LIMIT 1"
        )
        assert "~" in name
        assert await database.fetchval(
            "SELECT dead_at IS NULL FROM hybrid_runner.workers WHERE id = $1", name
        )
        assert await frozen.ends() == 0
    assert (
        await database.fetchval("SELECT count(*) FROM hybrid_runner.workers WHERE dead_at IS NULL")
        == 0
    )


@pytest.mark.parametrize("kind", ["block", "hold_the_gil"])
async def test_a_handler_that_holds_up_the_loop_does_not_make_its_worker_dead(
    dsn: str, database: Connection, kind: str
) -> None:
    """The heartbeat has a thread of its own; no other worker runs the job again."""
    # A thread cannot run either while the interpreter is held: that may last for less than the
    # lease.
    seconds = PATIENT_LEASE * 1.5 if kind == "block" else PATIENT_LEASE * 0.3
    patient = {"HYBRID_RUNNER_LEASE": str(PATIENT_LEASE)} | BEATS
    async with (
        a_worker(dsn, HYBRID_RUNNER_STALL_AFTER="2s", **patient) as blocked,
        a_worker(dsn, **patient) as other,
    ):
        other.process.send_signal(signal.SIGSTOP)  # so that it is the first one that takes the job
        [job] = await insert(database, kind, payload=seconds)
        await until_fetched(database, BEGAN, 1)
        other.process.send_signal(signal.SIGCONT)
        if kind == "block":
            line = await blocked.says("the event loop has stood still", job)
            assert "lost_app.py" in line["message"]
            assert "time.sleep(seconds)" in line["message"]
        await until_fetched(database, COMPLETED, 1)
    assert await database.fetchval("SELECT attempt FROM hybrid_runner.archive") == 1
    assert await database.fetchval("SELECT count(*) FROM public.runs") == 1


async def test_while_the_loop_stands_still_the_pages_say_so(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """A11: not ready, and answered meanwhile: the pages have a thread of their own."""
    port, go_on = free_port(), tmp_path / "go on"
    settings = {"HYBRID_RUNNER_HTTP_PORT": str(port), "HYBRID_RUNNER_STALL_AFTER": "3s"}
    async with a_worker(dsn, **settings) as blocked, browser(port) as client:
        assert (await client.get("/ready"))[0] == 200
        [job] = await insert(database, "block_until", payload=str(go_on))
        await blocked.says("the event loop has stood still", job)
        status, body = await client.get("/ready")
        assert (status, body["ready"], body["phase"]) == (503, False, "stalled")
        go_on.touch()
        await until_fetched(database, COMPLETED, 1)
        await client.until("/ready", 200)
        assert (await client.get("/health"))[1]["worker"]["stalls"] == 1


async def test_a_job_past_its_time_out_is_taken_from_a_worker_that_hangs(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """The worker lives, and so says its heartbeat; its loop cannot enforce anything."""
    go_on = tmp_path / "go on"
    # On a busy machine, too, it is the time-out that ends it.
    async with (
        a_worker(dsn, HYBRID_RUNNER_TIMEOUT_GRACE="500ms", **PATIENT) as hung,
        a_worker(dsn, **PATIENT) as other,
    ):
        other.process.send_signal(signal.SIGSTOP)
        [job] = await insert(database, "block_in_time", payload=str(go_on))
        await until_fetched(database, BEGAN, 1)
        other.process.send_signal(signal.SIGCONT)
        await until_fetched(database, COMPLETED, 1)
        row = await database.fetchrow(
            "SELECT attempt, errors, result #>> '{}' AS result FROM hybrid_runner.archive WHERE id"
            " = $1",
            job,
        )
        assert row is not None
        assert (row["attempt"], row["result"]) == (2, "attempt 2")
        assert "its worker did not end it" in row["errors"]
        go_on.touch()
        await hung.says("is no longer valid", job)  # its own outcome, late


async def test_jobs_that_wait_for_a_process_have_not_begun(dsn: str, database: Connection) -> None:
    """Such jobs are claimed, and their time-outs count from when they run."""
    settings = {
        "HYBRID_RUNNER_PROCESS_SLOTS": "1",
        "HYBRID_RUNNER_TIMEOUT_GRACE": "300ms",
        "HYBRID_RUNNER_HEARTBEAT": "300ms",
        "HYBRID_RUNNER_LEASE": "30s",
    }
    async with a_worker(dsn, **settings):
        await insert(database, "in_process_in_time", 12, payload=0.9)  # longer than the time-out
        await until_fetched(database, COMPLETED, 12)
    assert await database.fetchval("SELECT max(attempt) FROM hybrid_runner.archive") == 1


async def test_jobs_that_kill_their_workers_end(dsn: str, database: Connection) -> None:
    """A rescue charges the attempt: what takes every worker down does not do so for ever."""
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, payload, max_attempts, attempt, state, claim,"
        " worker_id, started_at) VALUES ('once_long', '1', 3, 3, 'running', 1, 'gone', now())"
    )
    async with a_worker(dsn):
        await until_fetched(
            database, "SELECT count(*) FROM hybrid_runner.archive WHERE state = 'failed'", 1
        )
    assert "WorkerLost" in await database.fetchval("SELECT errors::text FROM hybrid_runner.archive")


async def test_the_processes_of_handlers_end_with_a_killed_worker(
    dsn: str, database: Connection
) -> None:
    """What a handler did on for nobody would be done beside the second attempt."""
    async with a_worker(dsn) as doomed:
        await insert(database, "in_process", payload=600)
        await until_fetched(database, BEGAN, 1)
        child = await database.fetchval("SELECT pid FROM public.runs")
        assert child != doomed.process.pid
        doomed.process.kill()
        await until(lambda: not is_alive(child))
    async with a_worker(dsn):
        await until_fetched(database, COMPLETED, 1)


async def test_a_stop_of_the_whole_group_leaves_processes_of_handlers_their_grace(
    dsn: str, database: Connection
) -> None:
    """A13: systemd and shells signal every process; which of them has to stop is the worker's
    business.
    """
    async with a_worker(dsn) as stopping:
        await insert(database, "in_process", payload=1.5)
        await until_fetched(database, BEGAN, 1)
        os.kill(await database.fetchval("SELECT pid FROM public.runs"), signal.SIGTERM)
        assert await stopping.ends() == 0
    assert (
        await database.fetchval("SELECT state::text || attempt FROM hybrid_runner.archive")
        == "completed1"
    )


def is_alive(pid: int) -> bool:
    """Whether that process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_stall_is_an_event_on_the_span_of_the_job_that_caused_it(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """F4: readable where the trace is read."""
    go_on = tmp_path / "go on"
    async with Collector() as collector:
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "HYBRID_RUNNER_STALL_AFTER": "3s",
        }
        async with a_worker(dsn, **settings) as blocked:
            [job] = await insert(database, "block_until", payload=str(go_on))
            await blocked.says("the event loop has stood still", job)
            go_on.touch()
            await until_fetched(database, COMPLETED, 1)
            assert await blocked.ends() == 0
    [span] = [span for span, _ in collector.spans if span.name == "run block_until"]
    [event] = [event for event in span.events if event.name == "event loop blocked"]
    stack = {pair.key: pair.value.string_value for pair in event.attributes}["code.stacktrace"]
    assert "_hold_up(Path(file))" in stack


def only_child(pid: int) -> int:
    [child] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


UNSHARED = ("unshare", "--pid", "--fork", "--kill-child")


def process_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARED, "true"], check=False, capture_output=True).returncode == 0


async def test_as_process_number_one_it_stops_as_anywhere(dsn: str, database: Connection) -> None:
    """A container's first process: no default action of a signal applies to it, and nobody else
    reaps.
    """
    if not process_namespaces():
        missing("no process namespaces here")
    settings = environment(
        HYBRID_RUNNER_DSN=dsn, HYBRID_RUNNER_GRACE="100ms", HYBRID_RUNNER_LEASE="5m"
    )
    first = await asyncio.create_subprocess_exec(
        *UNSHARED, *COMMAND, "worker", APP, cwd=ROOT, env=settings
    )
    try:
        await insert(database, "once_long", 2)
        await insert(database, "in_process")
        await until_fetched(database, BEGAN, 3)
        assert await database.fetchval("SELECT bool_or(pid = 1) FROM public.runs")
        os.kill(only_child(first.pid), signal.SIGTERM)
        assert await asyncio.wait_for(first.wait(), 120) == 0
    finally:
        if first.returncode is None:
            first.kill()
            await first.wait()
    rows = await database.fetch("SELECT state::text, attempt FROM hybrid_runner.jobs")
    assert [tuple(row) for row in rows] == [("queued", 0)] * 3
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.workers") == 0
