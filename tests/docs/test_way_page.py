"""The way of a job, as docs/architecture.md has it, is the way that a job goes; functions that the
page names are there.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import pytest

from hybrid_runner import Runner
from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT
from tests.support.bells import until_mode
from tests.support.waiting import until, until_fetched
from tests.support.working import working

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "hybrid_runner"
INSERT = "INSERT INTO hybrid_runner.jobs (kind) VALUES ('note')"
ENDED = "SELECT count(*) FROM hybrid_runner.archive"
STEP = re.compile(r"^\| \d+ \| `([\w./]+)` \| (?:`([\w.<>]+)`|[^|]*) \|", re.MULTILINE)
NAMED = re.compile(r"`(\w[\w/]*\.py)`: `([\w.]+)`")


class Step(NamedTuple):
    """A function of a module."""

    where: str
    what: str


def section(title: str) -> str:
    return PAGE[PAGE.index(f"## {title}\n") :].split("\n## ", 1)[0]


def way() -> list[Step]:
    """The steps in Python."""
    return [
        Step(where, what)
        for where, what in STEP.findall(section("The way of a job"))
        if where.endswith(".py")
    ]


def beside() -> set[str]:
    """Modules that are asked or told."""
    rows = section("The way of a job").split("| where | what for |")[1]
    return {
        module
        for row in re.findall(r"^\| (`[^|]+) \|", rows, re.MULTILINE)
        for module in re.findall(r"`([^`]+)`", row)
    }


OTHERS = {
    Step("worker/reactions.py", "Reactions.on_news"),
    Step("worker/reactions.py", "Reactions.on_members"),
    Step("worker/reactions.py", "Reactions.on_proof_sent"),
    Step("worker/liveness/watchdog.py", "Watchdog._turn"),
    Step("worker/queue/timer.py", "Timer.ask"),
}
"""The heartbeat, the watchdog and the fallback poll, whose looks alone ask when the next job is due,
go on beside the job.
"""


class Recorder:
    """Notes which functions of the package are entered in this thread, each time that one begins or
    goes on.
    """

    def __init__(self) -> None:
        self.entered: list[Step] = []
        self._begun = False

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(f"{PACKAGE}/"):
            return
        step = Step(path.removeprefix(f"{PACKAGE}/"), frame.f_code.co_qualname)
        self._begun = self._begun or step == way()[0]
        if self._begun:
            self.entered.append(step)

    def has(self, step: Step) -> bool:
        return step in self.entered


@pytest.fixture
async def entered(dsn: str, database: Connection) -> list[Step]:
    """What one job enters, from its notification to its archive, in a worker that has run some."""
    app, ran = Runner(dsn, heartbeat="5m", lease="15m"), asyncio.Event()
    *_, last = way()

    @app.job("note")
    async def note(_: Any) -> None:
        ran.set()

    async with working(app) as worker:
        for number in range(1, 9):
            recorder = Recorder()
            await until_mode(worker, "asleep")
            await worker.idle()
            sys.setprofile(recorder)
            try:
                await database.execute(INSERT)
                await asyncio.wait_for(ran.wait(), 120)
                await until_fetched(database, ENDED, number)
                # The settler reads the answer later than others see the job in the archive.
                await until(partial(recorder.has, last), what=f"{last}")
                await asyncio.sleep(0.05)
            finally:
                sys.setprofile(None)
            ran.clear()
            if number > 1 and OTHERS.isdisjoint(recorder.entered):
                return recorder.entered
    raise AssertionError("a heartbeat or the fallback poll came each time")


def test_each_step_is_made_in_this_order(entered: list[Step]) -> None:
    assert len(way()) > 20
    rest = iter(entered)
    for step in way():
        assert step in rest, f"{step.what} of {step.where} is not entered after the step before it"


def test_no_other_module_is_entered(entered: list[Step]) -> None:
    assert {step.where for step in entered} == {step.where for step in way()} | beside()


def test_the_way_to_the_handler_is_short() -> None:
    """A ring reaches its handler in at most fifteen modules."""
    steps = way()
    to_the_handler = steps[
        : 1 + next(number for number, step in enumerate(steps) if step.what == "HandlerPools.call")
    ]
    assert len({step.where for step in to_the_handler}) <= 15


def functions(module: str) -> set[str]:
    """Those of a module, with the names of their classes."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    methods = {
        f"{of.name}.{one.name}"
        for of in tree.body
        if isinstance(of, ast.ClassDef)
        for one in of.body
        if isinstance(one, kinds)
    }
    return methods | {one.name for one in tree.body if isinstance(one, kinds)}


def test_functions_that_the_page_names_are_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 8
    assert [
        (module, function) for module, function in named if function not in functions(module)
    ] == []


def test_the_files_of_the_way_are_there() -> None:
    files = STEP.findall(section("The way of a job"))
    assert [
        where
        for where, _ in files
        if not (PACKAGE / where).is_file() and not (ROOT / where).is_file()
    ] == []
