"""Tiny runs of real scenarios: what comes out is well formed, and the database is left as it
was.
"""

from __future__ import annotations

import json

import pytest

from hybrid_runner.bench.child import BenchError
from hybrid_runner.bench.running import run
from hybrid_runner.bench.scenarios import SCENARIOS
from hybrid_runner.bench.sizes import FULL, QUICK, Sizes
from hybrid_runner.storage.connections.connection import Connection, connect

TINY = Sizes(rounds=1, drain_jobs=100, pickups=5, bulk_jobs=100)


async def test_two_scenarios_give_figures_beside_others(empty_dsn: str) -> None:
    said: list[tuple[str, float]] = []
    results = await run(
        ["drain", "pickup"], TINY, empty_dsn, lambda name, share, _: said.append((name, share))
    )
    results = json.loads(json.dumps(results))
    assert [*results["scenarios"]] == ["drain", "pickup"]
    for scenario in results["scenarios"].values():
        assert "error" not in scenario
        for figure in scenario["figures"]:
            assert {*figure} == {"case", "unit", "value", "against", "reference", "ratio"}
            assert figure["value"] > 0
            assert figure["ratio"] == figure["value"] / figure["reference"]
    assert len(results["scenarios"]["pickup"]["details"]["microseconds"]["worker"]) == TINY.pickups
    assert said[0] == ("drain", 0.0)
    assert said[-1] == ("pickup", 1.0)
    assert results["about"]["server"] == "given by --dsn"


async def test_jobs_that_snooze_and_come_due_one_by_one_need_about_one_look_each(
    empty_dsn: str,
) -> None:
    """It took two to three before looks waited for the next few."""
    sizes = Sizes(rounds=1, trickle_jobs=333, trickle_seconds=1.5)
    scenarios = (await run(["trickle"], sizes, empty_dsn, lambda *_: None))["scenarios"]
    looks, p50, p99, *_ = scenarios["trickle"]["figures"]
    assert looks["ratio"] < 1.5
    assert 0 < p50["value"] <= p99["value"]


async def test_jobs_that_wait_hold_no_slot_and_need_less_than_a_look_each(empty_dsn: str) -> None:
    """B1: the runs of a second are looked for together."""
    sizes = Sizes(waiting_jobs=600, waiting_every=(1.5,), waiting_seconds=1.5)
    waiting = (await run(["waiting"], sizes, empty_dsn, lambda *_: None))["scenarios"]["waiting"]
    assert "error" not in waiting
    looks, _, _, slots, memory, *_ = waiting["figures"]
    assert looks["ratio"] < 1.2
    assert slots["value"] < 60  # of 600 that wait
    assert memory["value"] > 0


@pytest.mark.timeout(150)
async def test_services_are_polled_by_a_job_per_host_beside_a_job_per_service(
    empty_dsn: str,
) -> None:
    """C5: far fewer jobs than polls, and nothing of it is left in the database."""
    sizes = Sizes(monitor_services=200, monitor_hosts=4, monitor_every=5.0, monitor_seconds=8.0)
    monitors = (await run(["monitors"], sizes, empty_dsn, lambda *_: None))["scenarios"]["monitors"]
    assert "error" not in monitors
    polls, jobs, *_ = monitors["figures"]
    assert 0 <= jobs["value"] < polls["value"]
    assert [*monitors["details"]["costs"]] == [
        "the requests alone",
        "a job per service",
        "a job per host",
    ]


async def test_an_application_s_rows_are_worked_on_and_its_statements_measured(
    empty_dsn: str,
) -> None:
    sizes = Sizes(rounds=1, attached_rows=100, producer_seconds=0.2)
    scenarios = (await run(["attached", "triggers"], sizes, empty_dsn, lambda *_: None))[
        "scenarios"
    ]
    for scenario in scenarios.values():
        assert "error" not in scenario
        assert len(scenario["figures"]) == 4
        # Of so few rows the worker's start, which is taken off, costs more than they do.
        rates = [each for each in scenario["figures"] if "processor" not in each["case"]]
        assert len(rates) >= 2
        assert all(figure["ratio"] > 0 for figure in rates)


async def test_a_heartbeat_beside_a_backlog_stands_beside_one_alone(empty_dsn: str) -> None:
    sizes = Sizes(beat_jobs=2_000, horizon_jobs=2_000, beats=3)
    scenarios = (await run(["beat"], sizes, empty_dsn, lambda *_: None))["scenarios"]
    assert {figure["against"] for figure in scenarios["beat"]["figures"]} == {"alone"}
    assert len(scenarios["beat"]["figures"]) == 8


async def test_what_is_inserted_while_sessions_are_ended_is_handled_once(empty_dsn: str) -> None:
    sizes = Sizes(rounds=1, killed_rate=50, killed_seconds=6.0)
    killed = (await run(["killed"], sizes, empty_dsn, lambda *_: None))["scenarios"]["killed"]
    assert "error" not in killed
    ended = killed["details"]["rounds"]["sessions ended"]
    assert ended["handled"] == ended["sent"] == ended["archived"]["jobs"]
    assert len(ended["ended"]) >= 1


async def test_a_database_that_was_empty_is_empty_again(empty_dsn: str) -> None:
    await run(["bulk"], TINY, empty_dsn, lambda *_: None)
    connection = await connect(empty_dsn)
    assert (
        await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hybrid_runner%'"
        )
        == []
    )
    await connection.close()


async def test_a_migrated_database_keeps_its_tables_and_loses_what_bench_made(
    dsn: str, database: Connection
) -> None:
    await run(["pickup"], TINY, dsn, lambda *_: None)
    for table in ("all_jobs", "queues", "workers"):
        assert await database.fetchval(f"SELECT count(*) FROM hybrid_runner.{table}") == 0
    assert (
        await database.fetchval(
            "SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relname LIKE '%bench%'"
        )
        == 0
    )


async def test_a_database_with_jobs_is_refused_and_keeps_them(
    dsn: str, database: Connection
) -> None:
    await database.execute("INSERT INTO hybrid_runner.jobs (kind) VALUES ('precious')")
    with pytest.raises(BenchError, match="there are jobs in this database"):
        await run(["drain"], TINY, dsn, lambda *_: None)
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 1


async def test_a_scenario_that_fails_says_why_and_the_next_one_runs(empty_dsn: str) -> None:
    crowded = Sizes(rounds=1, bulk_jobs=100, fleet_workers=1_000_000)
    scenarios = (await run(["fleet", "bulk"], crowded, empty_dsn, lambda *_: None))["scenarios"]
    assert "1000000 workers need max_connections" in scenarios["fleet"]["error"]
    assert "error" not in scenarios["bulk"]


def test_the_quick_sizes_are_nowhere_larger() -> None:
    for name in Sizes.__dataclass_fields__:
        quick, full = getattr(QUICK, name), getattr(FULL, name)
        assert quick <= full or set(quick) <= set(full), name


def test_every_scenario_has_its_module() -> None:
    from importlib import import_module  # noqa: PLC0415

    for name in SCENARIOS:
        assert callable(import_module(f"hybrid_runner.bench.scenarios.{name}").measure)
