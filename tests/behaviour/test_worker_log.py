"""The log of a real worker: short, with the ids that lead on, and without secrets."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import WorkerProcess, fails, worker
from tests.support.bells import INSERT, Handlers, seen
from tests.support.proxy import Proxy
from tests.support.waiting import at_least, until
from tests.support.working import working

PASSWORD, OTHER = "Wombat/7@", "Numbat?8"
ENCODED, OTHER_ENCODED = "Wombat%2F7%40", "Numbat%3F8"
SECRETS = ("Wombat", "Numbat", "%2F7", "%3F8")
PAYLOAD = "platypus-of-the-customer"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TASKS = """
import logging
from hybrid_runner import Fail, Job, Runner
from pydantic import BaseModel
from tests.support.waiting import at_least, until

app = Runner()
log = logging.getLogger("application")

class Letter(BaseModel):
    text: str

@app.job("note")
async def note(payload: dict, job: Job) -> None:
    log.warning("a line of the handler")

@app.job("quick")
async def quick(payload: dict) -> None:
    pass

@app.job("fails")
async def fails(payload: dict) -> Fail:
    return Fail("no")

@app.job("strict")
async def strict(payload: Letter) -> None:
    pass

@app.job("raises", max_attempts=1)
async def raises(payload: dict) -> None:
    raise ValueError("it went wrong")

@app.job("tells", max_attempts=1)
async def tells(payload: dict) -> None:
    raise ValueError(f"it went wrong with {payload['text']}")
"""
ENDED = "SELECT count(*) FROM hybrid_runner.archive"
MANY = "INSERT INTO hybrid_runner.jobs (kind) SELECT $1 FROM generate_series(1, 10000)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def with_password(dsn: str, password: str = ENCODED) -> str:
    return dsn.replace("@127.0.0.1", f":{password}@127.0.0.1").replace("//:", "//postgres:")


async def until_ended(database: Connection, count: int) -> None:
    await until(lambda: database.fetchval(ENDED), at_least(count), patience=150)


def hides_all_secrets(process: WorkerProcess) -> None:
    text = json.dumps(process.lines)
    assert process.lines
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("kind", ["quick", "fails"])
async def test_ten_thousand_jobs_are_a_log_that_can_be_read(
    kind: str, dsn: str, database: Connection, folder: Path
) -> None:
    """A12: at info level; and it says what became of each of them."""
    async with worker("tasks:app", "--dsn", dsn, cwd=folder) as process:
        await process.says("listening on")
        await database.execute(MANY, kind)
        await until_ended(database, 10_000)
        assert await process.ends() == 0
    summaries = [line["settled"] for line in process.lines if "settled" in line]
    assert sum(sum(settled.values()) for settled in summaries) == 10_000
    assert len(process.lines) < 30 * (1 + len(summaries))
    assert len(process.lines) < 200


async def test_at_debug_level_each_look_and_each_claim_is_one_line(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A12"""
    caplog.set_level(logging.DEBUG, "hybrid_runner")
    handlers = Handlers(dsn)
    async with working(handlers.app) as running:
        for _ in range(20):
            await database.execute(INSERT, "note")
            await handlers.next()
        await running.idle()
        messages = list(caplog.messages)
        looks, found = seen(running).looks, sum(seen(running).found.values())
    assert found == 20
    assert sum(": looked (" in message for message in messages) == looks
    assert sum(message.startswith("claimed by ") for message in messages) == found
    assert sum("completed, attempt" in message for message in messages) == found


async def test_lines_about_a_job_carry_its_trace_inside_its_handler_and_outside(
    dsn: str, database: Connection, folder: Path
) -> None:
    """A12"""
    async with worker("tasks:app", "--dsn", dsn, "--log-level", "debug", cwd=folder) as process:
        await process.says("listening on")
        job = await database.fetchval(
            "INSERT INTO hybrid_runner.jobs (kind, traceparent) VALUES ('note', $1) RETURNING id",
            f"00-{TRACE}-00f067aa0ba902b7-01",
        )
        await until_ended(database, 1)
        assert await process.ends() == 0
    lines = [line for line in process.lines if line.get("job") == job]
    for part in ("claimed by", "note starts", "a line of the handler", "note completed"):
        assert part in " ".join(line["message"] for line in lines)
    assert {line.get("trace_id") for line in lines} == {TRACE}
    [inside] = [line for line in lines if line["logger"] == "application"]
    assert len(inside["span_id"]) == 16


@pytest.mark.parametrize(
    "place",
    [
        f"me:{ENCODED}@127.0.0.1:1/jobs",
        f"127.0.0.1:1/jobs?user=me&password={ENCODED}",
        f"me:{ENCODED}@nowhere.invalid/jobs",
    ],
)
@pytest.mark.parametrize("by", ["argument", "environment"])
async def test_a_server_that_is_not_there_does_not_bring_the_password_into_the_log(
    by: str, place: str, folder: Path
) -> None:
    dsn = f"postgresql://{place}"
    arguments: tuple[str, ...] = ("--dsn", dsn) if by == "argument" else ()
    more = {} if by == "argument" else {"HYBRID_RUNNER_DSN": dsn}
    more |= {
        "PGPASSWORD": OTHER,
        "HYBRID_RUNNER_LISTEN_DSN": f"postgresql://me:{OTHER_ENCODED}@127.0.0.1:1/jobs",
    }
    async with worker(
        "tasks:app", *arguments, "--log-level", "debug", cwd=folder, **more
    ) as process:
        await process.says("trying again")
        await process.ends()
    hides_all_secrets(process)


@pytest.mark.parametrize(
    "place",
    [
        "{}@127.0.0.1:1x/jobs",
        "me:{}@127.0.0.1:{port}/nowhere",
        "me:Wombat/7@127.0.0.1:{port}/nowhere",
    ],
)
async def test_a_dsn_that_can_never_work_is_refused_without_its_password(
    place: str, dsn: str, folder: Path
) -> None:
    """A database that is not there, a port that is none, a password that nobody encoded."""
    async with Proxy(dsn) as proxy:
        wrong = "postgresql://" + place.replace("{port}", str(proxy.port)).replace(
            "{}", f"me:{ENCODED}", 1
        ).replace("me:me:", "me:")
        line = await asyncio.to_thread(fails, "jobs", "list", "--dsn", wrong, cwd=folder)
    assert not [secret for secret in SECRETS if secret in line]


async def test_a_worker_that_goes_through_failures_of_all_kinds_tells_no_secret(
    dsn: str, database: Connection, folder: Path
) -> None:
    """Two passwords, and payloads: what an application puts into the message of its exception is
    the application's own.
    """
    async with Proxy(dsn) as proxy:
        more: dict[str, Any] = {
            "HYBRID_RUNNER_LISTEN_DSN": with_password(proxy.dsn, OTHER_ENCODED),
            "HYBRID_RUNNER_HEARTBEAT": "500ms",
            "HYBRID_RUNNER_LEASE": "3s",
            "PGPASSWORD": OTHER,
        }
        async with worker(
            "tasks:app",
            "--dsn",
            with_password(proxy.dsn),
            "--log-level",
            "debug",
            cwd=folder,
            **more,
        ) as process:
            await process.says("listening on")
            for kind in ("note", "strict", "raises", "tells", "unknown"):
                wrong = "wrong" if kind == "strict" else "text"
                await database.execute(
                    "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ($1,"
                    " jsonb_build_object($2::text, $3::text))",
                    kind,
                    wrong,
                    PAYLOAD,
                )
            await until_ended(database, 4)
            await proxy.cut()
            await process.says("heartbeat: ")
            await process.says("claiming from default: ")
            await proxy.mend()
            await process.says("works again")
            await process.says("listening on")
            assert await process.ends() == 0
    hides_all_secrets(process)
    telling = [line for line in process.lines if PAYLOAD in json.dumps(line)]
    assert telling
    assert all("it went wrong with" in json.dumps(line) for line in telling)


async def test_payloads_are_shown_when_that_is_asked_for(
    dsn: str, database: Connection, folder: Path
) -> None:
    async with worker(
        "tasks:app",
        "--dsn",
        dsn,
        "--log-level",
        "debug",
        cwd=folder,
        HYBRID_RUNNER_LOG_PAYLOADS="true",
    ) as process:
        await process.says("listening on")
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('quick',"
            " jsonb_build_object('text', $1::text))",
            PAYLOAD,
        )
        assert PAYLOAD in (await process.says("claimed by"))["message"]
        assert await process.ends() == 0
