"""The query runner of section B, whole: page, table, jobs, and a warehouse that misbehaves."""

from __future__ import annotations

import asyncio
import json
from socket import socket
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from examples.query_runner.fake.scripts import SCRIPTS
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.instrument import Instrument
from hybrid_runner.telemetry.metrics.instruments import (
    CONFIRMATIONS,
    GATE_ENDINGS,
    GATES_OPENED,
    TRIES,
)
from tests.examples.query_runner.conftest import MakeSystem, System
from tests.support.waiting import until, until_fetched

CLEAN_UPS = "hybrid_runner.jobs WHERE kind = 'clean-up-query'"
NOBODY = "11111111-1111-1111-1111-111111111111"
ENDS: dict[str, tuple[str, int | None, str | None, str | None]] = {
    "plain": ("ready", 4711, None, None),
    "late status": ("ready", 4711, "probe", None),
    "late rows": ("ready", 4711, None, None),
    "no rows": ("ready", 0, "status", None),
    "never there": ("failed", None, None, "its rows cannot be read after 6 tries"),
    "only a hint": ("ready", 0, "stillness", None),
    "wrong hints": ("ready", 4711, "probe", None),
    "forgotten": ("ready", 0, "stillness", None),
    "broken": ("failed", None, None, "division by zero in line 3"),
    "bad network": ("ready", 4711, None, None),
}
"""How each script ends: status, rows, what found them (None: either), message."""


async def test_every_script_ends_as_the_warehouse_meant_it(
    make_system: MakeSystem, database: Connection
) -> None:
    """B1, B7 to B11, B14: ten queries at once on two slots, ten times as fast: whoever sees nothing
    for 3 s takes two moments in which a query stands still for its end.
    """
    system: System = await make_system(faster=10)
    assert {*ENDS} == {*SCRIPTS} - {"never ends"}
    async with system.working() as worker:
        runs = {name: await system.start(name) for name in ENDS}
        ended = {name: await system.over(run) for name, run in runs.items()}
        values = worker.status().metric_values
    for name, (status, rows, found_by, message) in ENDS.items():
        row = ended[name]
        assert (row["status"], row["row_count"]) == (status, rows), (name, row)
        assert found_by is None or row["found_by"] == found_by, (name, row)
        assert (row["message"] or "").endswith(message or ""), (name, row)
        assert len(system.fake.of_run(runs[name])) == 1
        assert system.fake.deleted[runs[name]] == 1, name

    def counted(instrument: Instrument, *labels: str) -> Any:
        return values[instrument.name]["poll-shell-query", *labels]

    assert {field for field in ("probe", "hinted", "stuck") if counted(GATES_OPENED, field)} == {
        "probe",
        "hinted",
        "stuck",
    }
    by_probe = sum(row["found_by"] == "probe" for row in ended.values())
    assert counted(GATE_ENDINGS, "probe") >= by_probe >= 2
    assert counted(CONFIRMATIONS, "idle", "confirmed") == 2  # "only a hint", "forgotten"
    assert counted(TRIES, "rows", "used_up") == 1  # of "never there"


async def test_a_run_that_never_ends_is_failed_when_its_time_is_used_up(
    make_system: MakeSystem, database: Connection
) -> None:
    """B5: 29 minutes, two hundred times as fast; the message names the budget."""
    system: System = await make_system(faster=200)
    async with system.working():
        run = await system.start("never ends")
        row = await system.over(run)
    assert row["status"] == "failed"
    [poll] = await database.fetch(
        "SELECT *, extract(epoch FROM finished_at - began_at) AS took FROM hybrid_runner.archive"
        " WHERE kind = 'poll-shell-query'"
    )
    assert poll["took"] >= 8.7
    assert 1 < poll["snoozes"] <= 120
    assert f"max_duration (8.7s) is used up after {poll['snoozes']} snoozes" in row["message"]
    assert system.fake.deleted[run] == 1


async def test_a_waiting_run_holds_no_slot(make_system: MakeSystem, database: Connection) -> None:
    """B1: twenty queries run in the warehouse at once, on one slot."""
    system: System = await make_system(faster=20)
    async with system.working(slots=1):
        runs = [await system.start("forgotten") for _ in range(20)]
        await until(lambda: len(system.fake.queries), lambda started: started == 20)
        await until_fetched(
            database,
            "SELECT count(*) FROM hybrid_runner.jobs"
            " WHERE kind = 'poll-shell-query' AND state = 'queued' AND worker_id IS NULL",
            20,
        )
        for run in runs:
            assert (await system.over(run))["status"] == "ready"
    polls = await database.fetch(
        "SELECT key, attempt FROM hybrid_runner.archive WHERE kind = 'poll-shell-query'"
    )
    assert sorted(poll["key"] for poll in polls) == sorted(f"poll-{run}" for run in runs)
    assert {poll["attempt"] for poll in polls} == {1}


async def until_waiting(database: Connection, run: str) -> int:
    """The poll job of a run, once it has looked and waits."""

    async def look() -> Any:
        return await database.fetchval(
            "SELECT id FROM hybrid_runner.jobs WHERE key = $1 AND state = 'queued' AND snoozes > 0",
            f"poll-{run}",
        )

    found: int = await until(look)
    return found


async def test_a_run_that_waits_is_cancelled_at_once(
    make_system: MakeSystem, database: Connection
) -> None:
    """B6, B11"""
    system: System = await make_system(faster=0.1)  # so that its next look is far away
    async with system.working():
        run = await system.start("never ends")
        await until_fetched(
            database,
            "SELECT count(*) FROM hybrid_runner.jobs WHERE key = $1 AND state = 'queued'",
            1,
            f"poll-{run}",
        )
        assert await system.cancel(run) == (200, '{"cancel": "cancelled"}')
        row = await system.over(run)
        assert (row["status"], row["row_count"]) == ("canceled", None)
        assert "somebody cancelled it on the page" in row["message"]
        assert system.fake.deleted[run] == 1
        assert await system.cancel(run) == (409, "the run has ended already")


async def test_a_run_that_is_being_looked_at_is_cancelled_with_that_look(
    make_system: MakeSystem, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6, B11"""
    system: System = await make_system(faster=20)
    asked = asyncio.Event()

    async def status(_: str) -> Any:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(system.jobs.warehouse, "status", status)
    async with system.working():
        run = await system.start("plain")
        await asked.wait()
        assert await system.cancel(run) == (200, '{"cancel": "requested"}')
        assert (await system.over(run))["status"] == "canceled"
        assert system.fake.deleted[run] == 1


async def test_a_run_that_nobody_has_begun_is_cancelled_and_cleaned_up(
    make_system: MakeSystem,
) -> None:
    """B6, B11"""
    system: System = await make_system(faster=20)
    async with system.working():
        pass  # from now on the database knows the kinds and their clean-up
    run = await system.start("plain")
    assert await system.cancel(run) == (200, '{"cancel": "cancelled"}')
    assert (await system.run(run))["status"] == "queued"
    async with system.working():
        assert (await system.over(run))["status"] == "canceled"
    assert system.fake.queries == []


async def test_a_run_that_cannot_be_started_fails(make_system: MakeSystem) -> None:
    """B10, B11: the warehouse is away for as long as there are attempts."""
    system: System = await make_system(faster=20)
    await system.fake.stop()
    run = await system.start("plain")
    with socket() as nobody:
        nobody.bind(("127.0.0.1", urlsplit(system.fake.url).port))  # else others may get its port
        async with system.working():
            row = await until(
                lambda: system.run(run), lambda row: row["ended_at"], patience=120, what=run
            )
    assert row["status"] == "failed"
    assert "Cannot connect" in row["message"]
    assert row["cleaned_at"] is None  # its clean-up goes on trying


async def test_ended_jobs_are_kept_as_their_kind_says(
    make_system: MakeSystem, database: Connection
) -> None:
    """B15"""
    system: System = await make_system()
    async with system.working():
        await until_fetched(
            database,
            "SELECT array_agg(state::text || ' ' || keep ORDER BY state)"
            " FROM hybrid_runner.retention WHERE kind = 'poll-shell-query'",
            ["completed 01:00:00", "failed 1 day"],
        )


async def test_a_run_without_its_follow_up_gets_it_back(
    make_system: MakeSystem, database: Connection
) -> None:
    """B12: somebody deleted the job by hand."""
    system: System = await make_system(faster=20)
    async with system.working():
        run = await system.start("never ends")
        await until_waiting(database, run)
        # Beside the clean-up of its first job it would be left alone, for a minute.
        await until_fetched(database, f"SELECT count(*) FROM {CLEAN_UPS}", 0)
        await database.execute("DELETE FROM hybrid_runner.jobs WHERE key = $1", f"poll-{run}")
        await database.execute(
            "UPDATE query_runner.runs SET started_at = now() - interval '2 minutes'"
        )
        await database.execute(
            "UPDATE hybrid_runner.duties SET taken_at = now() - interval '1 hour'"
            " WHERE name LIKE 'reconcile:%'"
        )
        [started] = system.fake.of_run(run)
        started.script = SCRIPTS["plain"]
        row = await system.over(run)
    assert (row["status"], row["row_count"]) == ("ready", 4711)
    assert len(system.fake.of_run(run)) == 1


async def test_a_run_whose_clean_up_has_failed_is_swept(
    make_system: MakeSystem, database: Connection
) -> None:
    """B11: the sweeper is the backstop."""
    system: System = await make_system(faster=20)
    await database.execute(
        "INSERT INTO query_runner.runs (id, job_id, sql, status, ended_at)"
        " VALUES ($1, 1, 'SELECT 1', 'failed', now() - interval '1 hour')",
        UUID(NOBODY),
    )
    async with system.working():
        await system.over(NOBODY)
    assert system.fake.deleted[NOBODY] == 1


async def test_jobs_from_before_a_deploy_end_beside_those_of_after(
    make_system: MakeSystem, database: Connection
) -> None:
    """B18: their memory has no gates yet, and a field that no longer is; so has their payload."""
    system: System = await make_system(faster=20)
    task = await system.jobs.warehouse.start(NOBODY, "-- plays: no rows")
    await database.execute(
        "INSERT INTO query_runner.runs (id, job_id, sql, status, task_id)"
        " VALUES ($1, 1, 'SELECT 1', 'running', $2)",
        UUID(NOBODY),
        task,
    )
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (queue, kind, key, payload, data)"
        " VALUES ('shell-query', 'poll-shell-query', 'poll-' || $1, $2::jsonb, $3::jsonb)",
        NOBODY,
        json.dumps({"run": NOBODY, "sql": "SELECT 1", "tenant": 7}),
        json.dumps({"task": task, "polls": 3}),
    )
    async with system.working():
        run = await system.start("no rows")
        for each in (run, NOBODY):
            row = await system.over(each)
            assert (row["status"], row["row_count"]) == ("ready", 0)


async def test_a_kind_that_nobody_knows_is_left_alone_and_keeps_nobody_waiting(
    make_system: MakeSystem, database: Connection
) -> None:
    """B17: two kinds on one queue, and a third one from a newer deploy."""
    system: System = await make_system(faster=20)
    await database.execute(
        "INSERT INTO hybrid_runner.jobs (queue, kind) SELECT 'shell-query', 'poll-shell-query-v2'"
        " FROM generate_series(1, 50)"
    )
    async with system.working():
        assert (await system.over(await system.start("broken")))["status"] == "failed"
    assert (
        await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs WHERE attempt = 0") == 50
    )


# --- the page


async def test_a_run_is_shown_as_its_row_says_then_live_until_it_is_over(
    make_system: MakeSystem,
) -> None:
    """B13"""
    system: System = await make_system(faster=20)
    run = await system.start("plain")
    seen = list[tuple[str, str]]()
    async with system.events(run) as events:
        async for name, data in events:
            seen.append((name, data.get("kind") or data["status"]))
            if len(seen) == 2:  # the row and the job that waits for a worker
                async with system.working():
                    seen += [(n, d.get("kind") or d["status"]) async for n, d in events]
                break
    assert seen[0] == ("run", "queued")
    assert seen[1] == ("queued", "execute-shell-query")
    assert seen[-1] == ("run", "ready")
    kinds = list(dict.fromkeys(kind for name, kind in seen if name != "run"))
    assert kinds == ["execute-shell-query", "poll-shell-query", "clean-up-query"]
    async with system.events(run) as events:
        assert [(name, data["status"]) async for name, data in events] == [("run", "ready")]


@pytest.mark.parametrize("sql", ["", "x" * 10_001, "a\x00b", 7, None])
async def test_a_query_that_cannot_be_is_refused_in_one_line(
    make_system: MakeSystem, database: Connection, sql: object
) -> None:
    system: System = await make_system()
    async with system.session.post("/runs", json={"sql": sql}) as answer:
        assert answer.status == 422
        assert (await answer.text()).startswith("sql: ")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.all_jobs") == 0


async def test_another_sites_form_starts_nothing(
    make_system: MakeSystem, database: Connection
) -> None:
    system: System = await make_system()
    run = await system.start("plain")
    for path in ("/runs", f"/runs/{run}/cancel"):
        async with system.session.post(path, data={"sql": "SELECT 1"}) as answer:
            assert answer.status == 415
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 1


@pytest.mark.parametrize("run", ["x", NOBODY])
async def test_a_run_that_is_none_is_not_found(make_system: MakeSystem, run: str) -> None:
    system: System = await make_system()
    for path in (f"/runs/{run}", f"/runs/{run}/events"):
        async with system.session.get(path) as answer:
            assert answer.status == 404
    assert (await system.cancel(run))[0] == 404
