"""No line is lost, and none says a known password (A12)."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from hybrid_runner import secrets
from hybrid_runner.secrets import HIDDEN
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.logs.lines import ConsoleLines, JsonLines, Lines
from tests.cli.running import environment, worker

DSN = "postgresql://me:Wombat7@db.example/jobs"
LAYOUTS = [JsonLines(), ConsoleLines(colours=False)]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", frozenset())
    monkeypatch.setattr(secrets, "_pattern", None)
    secrets.learn_dsn(DSN)


@dataclass
class Target:
    dsn: str
    password: str


class Where(Enum):
    HERE = DSN


class Mute:
    def __str__(self) -> str:
        raise RuntimeError(DSN)

    __repr__ = __str__


def record(message: str = "a line", *arguments: object, **extra: object) -> logging.LogRecord:
    """As a logger makes it."""
    return logging.getLogger("app").makeRecord(
        "app", logging.INFO, __file__, 1, message, arguments, None, extra=extra
    )


def as_json(message: str = "a line", *arguments: object, **extra: object) -> dict[str, Any]:
    """The line of that record."""
    line: dict[str, Any] = orjson.loads(JsonLines().format(record(message, *arguments, **extra)))
    return line


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("half \ud83d of a pair", "half ? of a pair"),
        (2**70, str(2**70)),
        (-(2**63), -(2**63)),
        (2**64 - 1, 2**64 - 1),
        (float("nan"), None),
        ({2**70: [2**70]}, {str(2**70): [str(2**70)]}),
        ({"half \ud83d": 1}, {"half ?": 1}),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Mute(), "<Mute that cannot be shown: RuntimeError>"),
        (
            Target(DSN, "Wombat7"),
            f"Target(dsn='postgresql://me:{HIDDEN}@db.example/jobs', password='{HIDDEN}')",
        ),
        ([Where.HERE], ["Where.HERE"]),
        (ValueError(DSN), f"postgresql://me:{HIDDEN}@db.example/jobs"),
        (DSN.encode(), f"b'postgresql://me:{HIDDEN}@db.example/jobs'"),
        ({DSN: 1}, {f"postgresql://me:{HIDDEN}@db.example/jobs": 1}),
        ({"PGPASSWORD": "Wombat7"}, {"PGPASSWORD": HIDDEN}),
        pytest.param(
            10**5000,
            "<int that cannot be shown: ValueError>",
            id="an int that is too long for text",
        ),
    ],
)
def test_whatever_a_field_holds_the_line_is_written_and_clean(
    value: object, written: object
) -> None:
    line = as_json(value=value)
    assert (line["message"], line["value"]) == ("a line", written)
    assert "Wombat7" not in str(line)


def test_a_field_without_end_comes_to_one() -> None:
    endless: dict[str, Any] = {"many": list(range(5000)), "long": "x" * 10**6}
    endless["itself"] = [endless] * 1000
    assert len(JsonLines().format(record(value=endless))) < 10**6


@pytest.mark.parametrize("lines", LAYOUTS)
@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("%d jobs at %s", ("many", DSN)),
        ("one %s", (DSN, DSN)),
        ("a %s", (Mute(),)),
        ("half \ud83d", ()),
    ],
)
def test_a_message_that_cannot_be_made_is_a_line_all_the_same(
    lines: Lines, message: str, arguments: tuple[object, ...]
) -> None:
    line = lines.format(record(message, *arguments))
    assert message[:4] in line
    assert "Wombat7" not in line


@pytest.mark.parametrize("lines", LAYOUTS)
def test_a_traceback_with_its_causes_and_notes_is_clean_and_the_stack_is_written(
    lines: Lines,
) -> None:
    cause = OSError(DSN)
    cause.add_note(f"at {DSN}")
    error = ExceptionGroup(f"with {DSN}", [ValueError(DSN)])
    error.__cause__ = cause
    failed = logging.makeLogRecord(
        {"msg": "it failed", "levelname": "ERROR", "exc_info": (type(error), error, None)}
    )
    failed.stack_info = f"Stack (most recent call last):\n  here: {DSN}"
    line = lines.format(failed)
    assert all(
        word in line
        for word in ("OSError", "ExceptionGroup", "ValueError", "most recent call last):", "here: ")
    )
    assert "Wombat7" not in line


def test_password_at_a_cut_of_a_long_text_is_hidden() -> None:
    for before in range(16_384 - 50, 16_384 + 50):
        text = " " * before + DSN + " " * 50_000 + DSN + " " * before
        line = as_json(f"begin{text}end")["message"]
        assert line.startswith("begin")
        assert line.endswith("end")
        assert "characters are left out" in line
        assert "Wom" not in line
        assert "at7" not in line


def test_a_long_message_and_a_long_traceback_are_cut_once() -> None:
    failed = record("x" * 100_000)
    failed.exc_info = (ValueError, ValueError("y" * 100_000), None)
    line = orjson.loads(JsonLines().format(failed))
    assert [line[name].count("left out") for name in ("message", "exception")] == [1, 1]
    assert [len(line[name]) // 1024 for name in ("message", "exception")] == [32, 64]


@pytest.mark.parametrize("lines", LAYOUTS)
def test_a_record_that_cannot_be_written_is_a_line_that_says_so(lines: Lines) -> None:
    broken = record(f"to {DSN}")
    broken.created = float("nan")
    assert "a line from test_logs.py:1 cannot be written: ValueError" in lines.format(broken)


@pytest.mark.parametrize("lines", LAYOUTS)
def test_no_place_of_a_line_shows_a_password(lines: Lines) -> None:
    fields = {"job": DSN, "trace_id": DSN, "span_id": DSN, DSN: DSN}
    assert "Wombat7" not in lines.format(record(f"to {DSN}", **fields))


PROGRAM = """
import asyncio, gc, logging, sys, threading, warnings
from hybrid_runner.secrets import learn_dsn
from hybrid_runner.telemetry.logs.setup import configure_logs

DSN = "postgresql://me:Wombat7@db.example/jobs"
learn_dsn(DSN)
configure_logs("info", {layout!r})
log = logging.getLogger("app")

class Unlucky(logging.Filter):
    def filter(self, record):
        record.created = "never" if record.msg == "broken %s" else record.created
        return True

class Loud:
    def __del__(self):
        raise ValueError("deleted " + DSN)

def thread():
    raise ValueError("in a thread " + DSN)

log.addFilter(Unlucky())
log.warning("broken %s", DSN, extra={{"dsn": DSN}})
warnings.warn("warned of " + DSN)
started = threading.Thread(target=thread)
started.start()
started.join()
loud = Loud()
del loud

async def forgotten():
    raise ValueError("forgotten " + DSN)

async def main():
    task = asyncio.ensure_future(forgotten())
    await asyncio.wait([task])
    del task
    gc.collect()
    asyncio.get_running_loop().call_soon(thread)
    await asyncio.sleep(0)

{run}
sys.stderr.write = None
log.error("nowhere %s", DSN)
"""


@pytest.mark.parametrize("layout", ["json", "console"])
@pytest.mark.parametrize("run", ["asyncio.run(main())", "import uvloop; uvloop.run(main())"])
def test_what_python_would_print_by_itself_is_a_clean_line(
    layout: str, run: str, tmp_path: Path
) -> None:
    """Broken lines, warnings, errors of threads, of destructors, of tasks and callbacks."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(layout=layout, run=run))
    ended = subprocess.run(
        [sys.executable, program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said = ("cannot be written", "warned of", "in a thread", "deleted", "forgotten")
    assert [what for what in said if what not in ended.stderr] == []
    assert ended.stderr.count("in a thread postgresql") == 2
    assert "Wombat7" not in ended.stderr + ended.stdout
    if layout == "json":
        assert all(orjson.loads(line)["level"] for line in ended.stderr.splitlines())


TASKS = """
import logging, warnings
from hybrid_runner import Runner

app = Runner()

@app.job("core", executor="process")
def core(payload: dict) -> None:
    log = logging.getLogger("tasks")
    log.debug("too quiet to be heard")
    log.info("from a process, to %s", payload["known"], extra={"field": 7})
"""


async def test_a_handler_in_a_process_logs_as_the_worker_does(
    dsn: str, database: Connection, tmp_path: Path
) -> None:
    """A12: level, layout, ids and passwords."""
    (tmp_path / "tasks.py").write_text(TASKS)
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    insert = (
        "INSERT INTO hybrid_runner.jobs (kind, payload, traceparent) VALUES ('core', $1, $2)"
        " RETURNING id"
    )
    payload = orjson.dumps({"known": "Wombat7"}).decode()
    async with worker(
        "tasks:app", "--dsn", dsn, cwd=tmp_path, PGPASSWORD="Wombat7", OTEL_TRACES_EXPORTER="none"
    ) as process:
        await process.says("listening on default")
        job = await database.fetchval(insert, payload, f"00-{trace}-{parent}-01")
        line = await process.says("from a process", job)
        assert line["message"] == f"from a process, to {HIDDEN}"
        assert (line["level"], line["logger"], line["field"], line["trace_id"]) == (
            "info",
            "tasks",
            7,
            trace,
        )
        assert await process.ends() == 0
    assert not [line for line in process.lines if "too quiet" in line["message"]]


OWN = """
import asyncio, logging, sys
from hybrid_runner import Runner

app = Runner(sys.argv[1], http_port=0)

@app.job("core", executor="process")
def core(payload: dict) -> list:
    return [str(handler) for handler in logging.getLogger().handlers]

async def main():
    async with app, app.worker():
        print(await (await app.enqueue(core, {})).wait(120))

if __name__ == "__main__":
    logging.basicConfig(format="ours %(message)s", level="INFO")
    asyncio.run(main())
"""


def test_an_application_with_logs_of_its_own_keeps_them_in_its_processes(
    dsn: str, tmp_path: Path
) -> None:
    program = tmp_path / "own.py"
    program.write_text(OWN)
    ended = subprocess.run(
        [sys.executable, program, dsn],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr
