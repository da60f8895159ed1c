"""Values that a producer may write, shown to an operator: they break no list, and pass for nothing
else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.telemetry.logs.lines import ConsoleLines
from tests.cli.running import succeeds
from tests.support.logins import Login, Logins
from tests.support.streams import Stepwise, served

DECEIVING = (
    "k\n05:00:00.000 error   [job 1] FORGED\r\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u2066\u2028x"
)
ZONES = ["UTC", "America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin"]


async def shown(*arguments: str, zone: str = "UTC") -> str:
    """What the command prints."""
    return await asyncio.to_thread(succeeds, *arguments, TZ=zone)


async def put(login: Logins, columns: str, *values: Any) -> None:
    """A row of a producer's."""
    connection = await connect(login(Login.PRODUCER))
    try:
        numbers = ", ".join(f"${n}" for n, _ in enumerate(values, 1))
        await connection.execute(
            f"INSERT INTO hybrid_runner.jobs (kind, {columns}) VALUES ('k', {numbers})", *values
        )
    finally:
        await connection.close()


@pytest.mark.parametrize("zone", ZONES)
async def test_a_job_that_is_never_due_is_shown_so_and_hides_no_other(
    dsn: str, database: Connection, login: Logins, zone: str
) -> None:
    producer = await connect(login(Login.PRODUCER))
    await producer.execute("SET timezone = 'Pacific/Kiritimati'")
    for run_at in ("infinity", "9998-12-31 23:59:59.999999 UTC", "1970-01-01 UTC"):
        await producer.execute(
            f"INSERT INTO hybrid_runner.jobs (kind, run_at, finish_by) VALUES ('k', '{run_at}',"
            " '9998-12-31 UTC')"
        )
    await producer.close()
    never, far, _ = (
        row[0] for row in await database.fetch("SELECT id FROM hybrid_runner.jobs ORDER BY id")
    )
    listed = (await shown("jobs", "list", "--dsn", dsn, zone=zone)).splitlines()
    assert len(listed) == 4
    assert listed[3].split()[:6] == [str(never), "queued", "default", "k", "0", "due"]
    assert listed[3].endswith("due never")
    told = await shown("jobs", "show", str(never), "--dsn", dsn, zone=zone)
    assert re.search(r"^run_at +never$", told, re.MULTILINE)
    assert "run_at" in await shown("jobs", "show", str(far), "--dsn", dsn, zone=zone)
    for command in (["list"], ["show", str(never)]):
        document = json.loads(await shown("jobs", *command, "--json", "--dsn", dsn, zone=zone))
        job = document[2] if isinstance(document, list) else document
        assert job["run_at"] == "never"


async def test_pages_say_never_too(dsn: str, database: Connection, login: Logins) -> None:
    producer = await connect(login(Login.PRODUCER))
    await producer.execute("INSERT INTO hybrid_runner.jobs (kind, run_at) VALUES ('k', 'infinity')")
    await producer.close()
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    async with served(Stepwise(dsn).app) as (client, _):
        assert (await client.get(f"/jobs/{job}")).body["run_at"] == "never"
        async with client.events(f"/jobs/{job}/events") as seen:
            assert (await seen.next()).data["run_at"] == "never"


async def test_a_key_makes_no_lines_of_its_own_and_turns_no_text_round(
    dsn: str, database: Connection, login: Logins
) -> None:
    await put(login, "key, traceparent", DECEIVING, "t\nstate                completed")
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    told = await shown("jobs", "show", str(job), "--dsn", dsn)
    for line in told.splitlines():
        assert re.match(r"\w+ +\S", line), line
    assert len(re.findall("^state ", told, re.MULTILINE)) == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", told)


@pytest.mark.parametrize("errors", ["{}", "7", '"x"', "[7]", '[{"at": []}]', "null", "[[]]"])
async def test_errors_that_are_no_list_of_errors_are_shown_as_they_are(
    dsn: str, database: Connection, errors: str
) -> None:
    job = await database.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind, errors, progress) VALUES ('k', $1, $1) RETURNING id",
        errors,
    )
    assert str(job) in await shown("jobs", "list", "--dsn", dsn)
    assert "kind" in await shown("jobs", "show", str(job), "--dsn", dsn)


def test_a_log_line_of_the_console_is_one_line_whatever_it_says() -> None:
    lines = ConsoleLines(colours=False)
    raised = (ValueError, ValueError(DECEIVING), None)
    for name, arguments in (("application", ()), ("hybrid_runner.worker", (DECEIVING,))):
        record = logging.LogRecord(
            name, logging.ERROR, "p", 1, "%s" if arguments else DECEIVING, arguments, raised
        )
        record.job = DECEIVING
        text = lines.format(record)
        first, *others = text.split("\n")
        assert re.match(r"\d\d:\d\d:\d\d\.\d{3} error ", first)
        assert all(line.startswith("    ") for line in others)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)
