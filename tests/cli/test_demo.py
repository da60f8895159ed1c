"""hybrid-runner demo: plain, on a terminal, interrupted; it leaves nothing behind."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import struct
import termios
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from hybrid_runner.cli.demo.observations import Burst, EndedJob, Observations
from hybrid_runner.cli.demo.summary import as_document, print_advice, print_summary
from hybrid_runner.cli.demo.view import counts
from hybrid_runner.cli.output import visible_length, without_colours
from hybrid_runner.runner import Runner
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import COMMAND, environment, fails, succeeds

SLOWLY = """
import sys
from hybrid_runner.cli import main
from hybrid_runner.cli.commands import demo

demo.SECONDS = 40
sys.exit(main(sys.argv[1:]))
"""
"""A demo whose burst is a quarter of a minute away: a test that is late interrupts it before."""


async def left(database: Connection) -> int:
    count: int = await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs")
    return count


async def test_it_tells_its_story_in_plain_lines_and_ends_by_itself(empty_dsn: str) -> None:
    out = await asyncio.to_thread(succeeds, "demo", "--dsn", empty_dsn)
    for part in (
        "greeting completed",
        "payment failed, attempt 1 of 5; again in",
        "payment completed at attempt 2",
        "upload is snoozed for",
        "exists already: its key is held",
        "reminder completed",
        "one INSERT brings 5,000 jobs",
        "What happened",
        "one INSERT each (ring)",
        "jobs/s",
        "found by",
        "Try next",
        "INSERT INTO hybrid_runner.jobs",
    ):
        assert part in out
    assert "\x1b" not in out


async def test_interrupted_it_cancels_its_jobs_and_says_what_it_saw(
    dsn: str, database: Connection
) -> None:
    foreign = await database.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind, queue) VALUES ('mine', 'elsewhere') RETURNING id"
    )
    process = await asyncio.create_subprocess_exec(
        *(COMMAND[0], "-c", SLOWLY),
        "demo",
        "--json",
        "--log-level",
        "info",
        "--log-format",
        "json",
        "--dsn",
        dsn,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    while "snooze" not in json.loads(await process.stderr.readline())["message"]:
        pass
    process.send_signal(signal.SIGINT)
    out, _ = await process.communicate()
    assert process.returncode == 0
    document = json.loads(out)
    assert document["sent"] == sum(document["outcomes"].values())
    assert document["left"] == document["outcomes"].get("cancelled", 0)
    assert document["burst"] is None
    assert [row[0] for row in await database.fetch("SELECT id FROM hybrid_runner.jobs")] == [
        foreign
    ]


async def test_two_demos_in_one_database_would_confuse_each_other(
    dsn: str, database: Connection
) -> None:
    await database.execute("SELECT pg_advisory_lock(hashtextextended('hybrid_runner demo', 0))")
    assert "another demo is running" in await asyncio.to_thread(
        fails, "demo", "--json", "--dsn", dsn
    )


async def test_on_a_terminal_counts_are_renewed_below_the_events_and_gone_at_the_end(
    dsn: str, database: Connection
) -> None:
    process, ours = await on_terminal("demo", "--dsn", dsn)
    seen = ""

    async def read_until(text: str) -> None:
        nonlocal seen
        while text not in seen:
            seen += (await asyncio.to_thread(os.read, ours, 65536)).decode(errors="replace")

    await read_until("pickup p50")
    await read_until("upload is snoozed")
    process.send_signal(signal.SIGINT)
    await read_until("README.md")
    assert await process.wait() == 0
    os.close(ours)
    lines = [line.rpartition("\r")[2] for line in seen.replace("\r\n", "\n").split("\n")]
    shown = [line for line in lines[: lines.index("\x1b[1mWhat happened\x1b[0m")] if line]
    assert not any(visible_length(line.replace("\x1b[K", "")) > 80 for line in shown)
    assert not any("pickup p50" in line for line in shown)
    assert await left(database) == 0


async def on_terminal(*arguments: str) -> tuple[asyncio.subprocess.Process, int]:
    """The process, and our side of its terminal of 80 columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        env=environment(TERM="xterm"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    return process, ours


def observations() -> Observations:
    seen = Observations(
        sent=5_100,
        burst_ended=5_000,
        live=Counter(queued=12_345, running=200),
    )
    seen.ended = {n: EndedJob(n, "greeting", "completed", n / 10, 1.0, 1) for n in range(1, 100)}
    seen.ended[100] = EndedJob(100, "payment", "failed", 3.0, 1.0, 2)
    seen.settled, seen.found = {"retry": 1, "completed": 5_100}, {"ring": 90, "slot": 5_010}
    seen.burst = Burst(5_000, 0.5, 100.0, 200.0)
    return seen


def test_counts_fit_eighty_columns() -> None:
    line = counts(observations(), 7, coloured=True)
    assert without_colours(line).endswith("5,100 of 5,100 done, 200 running, pickup p50 5.0 ms")
    assert visible_length(line) < 80


def test_counts_of_nothing_yet() -> None:
    assert counts(Observations(), 7, coloured=False).endswith("░  0 of 0 done, 0 running")


def test_the_summary_for_programs() -> None:
    document = as_document(observations())
    assert document["outcomes"] == {"completed": 5_099, "failed": 1}
    assert document["burst"]["jobs_per_second"] == 10_000
    assert [row["jobs"] for row in document["pickup"]] == [99, 1, 5_000]
    assert document["pickup"][0]["p50_ms"] == 5.0


def test_the_summary_of_a_demo_that_was_ended_early_adds_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_summary(Observations(sent=5, final=Counter(completed=4, cancelled=1)))
    lines = capsys.readouterr().out.splitlines()
    assert "  5 jobs arrived: 4 completed, 1 cancelled" in lines
    assert "  the cancelled one was not done yet when the demo ended" in lines
    [single] = [line for line in lines if "one INSERT each" in line]
    assert single.split()[-3:] == ["0", "-", "-"]
    assert max(map(len, lines)) < 80


def test_advice_fits_a_terminal_and_can_still_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    psql = (
        '"/some/where/psql" "postgresql://hybrid_runner@/hybrid_runner?host='
        + "%2Frun" * 2
        + '&port=5432"'
    )
    print_advice(cast("Runner", SimpleNamespace(embedded=SimpleNamespace(psql=psql))))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 80
    assert psql in " ".join(out.replace("\\\n", " ").split())
