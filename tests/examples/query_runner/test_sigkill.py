"""SIGKILL at each await of the jobs, in turn; a worker of the same name does the rest."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal

import pytest

from examples.query_runner.fake.scripts import NEVER, SCRIPTS, Script
from hybrid_runner.storage.connections.connection import Connection
from tests.examples.query_runner import mortal
from tests.examples.query_runner.conftest import MakeSystem, System
from tests.examples.query_runner.loading import Await, awaits
from tests.support.waiting import until_fetched

FASTER = 100
LONG_WAY = Script(
    "its hint is right, its table late, and there is nothing in it",
    finishes=8,
    says_complete=NEVER,
    hints=((8, NEVER),),
    queryable=40,
    rows=0,
)
"""Comes by every await but that of a status that says `complete`."""
STARTED_TWICE = {
    "execute: after warehouse.start(query.run, query.sql)",
    "execute: before job.save()",
}
"""The warehouse has begun, and nothing that lasts knows by what id."""
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.examples.query_runner.mortal"])


def test_every_await_of_the_jobs_is_one_to_die_at() -> None:
    walked = {point.function for point in awaits()}
    assert walked == {"execute", "poll", "look", "rows", "clean_up", "sweep"}
    assert {str(point) for point in awaits()} > STARTED_TWICE


@pytest.mark.parametrize("point", awaits(), ids=str)
async def test_a_worker_that_dies_there_leaves_the_rest_to_the_next(
    make_system: MakeSystem,
    dsn: str,
    database: Connection,
    point: Await,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B1, B2, B11, B16: one follow-up, one clean-up of each job, the right end; the warehouse was
    asked to start once, if the id of its task was saved.
    """
    monkeypatch.setitem(SCRIPTS, "long way", LONG_WAY)
    system: System = await make_system(faster=FASTER)
    # Of both nothing is found by a probe, at whatever moment a busy machine has it look.
    run = await system.start("no rows" if "'status'" in point.what else "long way")
    doomed = PROCESSES.Process(
        target=mortal.work, args=(dsn, system.fake.url, FASTER, point, "mortal"), daemon=True
    )
    doomed.start()
    await asyncio.to_thread(doomed.join, 120)
    assert doomed.exitcode == -signal.SIGKILL, "it did not come by there"
    async with system.working(worker_id="mortal"):
        row = await system.over(run)
        await until_fetched(database, "SELECT count(*) FROM hybrid_runner.jobs", 0)
    assert (row["status"], row["row_count"]) == ("ready", 0)
    jobs = await database.fetch(
        "SELECT id, kind, key, state::text, payload FROM hybrid_runner.all_jobs ORDER BY id"
    )
    assert {job["state"] for job in jobs} == {"completed"}
    [execute] = [job for job in jobs if job["kind"] == "execute-shell-query"]
    [poll] = [job for job in jobs if job["kind"] == "poll-shell-query"]
    assert poll["key"] == f"poll-{run}"
    ends = [job["key"] for job in jobs if job["kind"] == "clean-up-query"]
    assert sorted(ends) == sorted([f"ended:{execute['id']}", f"ended:{poll['id']}"])
    assert len(system.fake.of_run(run)) == (2 if str(point) in STARTED_TWICE else 1)
    assert 1 <= system.fake.deleted[run] <= 2
