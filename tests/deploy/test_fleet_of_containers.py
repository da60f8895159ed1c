"""F6: deploy/compose.yaml on a real engine: a fleet of containers that is killed, stopped and added
to, and what watches it.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from tests.deploy.test_dashboard import QUESTIONS, asked
from tests.support.composition import Composition, composed
from tests.support.engine import Engine
from tests.support.prometheus import Prometheus
from tests.support.waiting import until

JOBS = 5000
PATIENCE = 120
"""Seconds; far more than anything here takes."""
ROOM = 10
"""Jobs that a worker runs at a time: when one is lost, so many come back to the queue."""
INSERT = (
    "INSERT INTO hybrid_runner.jobs (kind, queue, payload) "
    f"SELECT 'slow', 'images', json_build_object('n', n) FROM generate_series(1, {JOBS}) AS n"
)
LOOKS = (
    "INSERT INTO hybrid_runner.jobs (kind, queue, max_snoozes) VALUES ('look', 'images', NULL),"
    " ('look', 'images', 0)"
)
"""One that waits, tries and ends; one whose budget is used up."""
WITHOUT_VALUES = re.compile(
    "hybrid_runner_(unknown_kind_jobs|expired_jobs_total|rows_shown|row_|late_rows|refused_rows"
    "|monitor_|tick|schedule)"
)
"""Figures that have none as long as all kinds are known, no table is attached, no service is
monitored and nothing is scheduled: test_dashboard_of_rows.py, test_dashboard_of_monitors.py and
test_dashboard_of_schedules.py ask for those.
"""
RUNNING = "SELECT DISTINCT left(worker_id, 12) FROM hybrid_runner.jobs WHERE state = 'running'"
ENDED = (
    "SELECT state || ' ' || count(*) || ' ' || count(DISTINCT result) FROM hybrid_runner.archive"
    " GROUP BY state"
)
LOGINS = (
    "SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name LIKE 'hybrid-runner%'"
)
OWNER = (
    "SELECT r.rolname || ' ' || left(r.rolsuper::text, 1) FROM pg_namespace AS n"
    " JOIN pg_roles AS r ON r.oid = n.nspowner WHERE n.nspname = 'hybrid_runner'"
)


@pytest.fixture
def fleet(docker_engine: Engine, image: str) -> Iterator[Composition]:
    """Three workers."""
    with composed(docker_engine) as composition:
        composition.scale(3)
        yield composition


@pytest.mark.timeout(400)
async def test_a_worker_is_killed_one_is_stopped_one_is_added_and_every_job_is_done(
    fleet: Composition,
) -> None:
    """A4 A6 A13 D5 D6 F5: 5,000 jobs from a fourth container; /scale follows, and Prometheus
    answers what the dashboard asks.
    """
    killed, stopped, stays = fleet.workers()
    await until_seen(lambda: [fleet.healthy(worker) for worker in fleet.workers()], all)
    await until_seen(
        lambda: fleet.page(stays, "/scale"),
        lambda said: said["workers"] == 3 and said["wanted"] == 0,
    )
    fleet.psql("jobs_producer", INSERT)
    high = await until_seen(
        lambda: fleet.page(stays, "/scale"), lambda said: said["backlog"] > 1000
    )
    assert high["wanted"] > high["workers"] == 3
    await until_seen(
        lambda: fleet.psql("jobs_reader", RUNNING),
        lambda working: set(working) == {killed, stopped, stays},
    )

    fleet.engine.docker("kill", "--signal", "KILL", killed)
    assert killed in fleet.psql("jobs_reader", RUNNING)
    fleet.engine.docker("stop", "--time", "40", stopped)
    assert exit_code(fleet, stopped) == 0
    assert stopped not in fleet.psql("jobs_reader", RUNNING)
    fleet.engine.docker("rm", killed, stopped)
    fleet.scale(2)
    [added] = set(fleet.workers()) - {stays}
    await until_seen(lambda: fleet.psql("jobs_reader", RUNNING), lambda working: added in working)

    backlogs: list[int] = []
    await until_seen(
        lambda: noted(fleet.page(added, "/scale"), backlogs),
        lambda said: said["backlog"] + said["running"] == 0,
    )
    assert len(set(backlogs)) > 3
    assert all(later <= earlier + ROOM for earlier, later in pairwise(backlogs)), backlogs
    assert fleet.page(added, "/scale")["wanted"] == 0
    assert fleet.psql("jobs_reader", LOGINS) == ["jobs_worker"]
    assert fleet.psql("jobs_reader", OWNER) == ["jobs_owner f"]
    assert fleet.psql("jobs_reader", ENDED) == [f"completed {JOBS} {JOBS}"]
    assert fleet.psql("jobs_reader", "SELECT count(*) FROM hybrid_runner.jobs") == ["0"]
    await until_seen(lambda: fleet.page(stays, "/scale"), lambda said: said["workers"] == 2)
    await shows_it_all(fleet)


def noted(said: dict[str, Any], backlogs: list[int]) -> dict[str, Any]:
    backlogs.append(said["backlog"])
    return said


async def until_seen(look: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    """By commands, each of which takes a while."""
    return await until(partial(asyncio.to_thread, look), enough, patience=PATIENCE)


def exit_code(fleet: Composition, container: str) -> int:
    return int(fleet.engine.docker("inspect", "--format", "{{.State.ExitCode}}", container))


async def answered(prometheus: Prometheus, question: str) -> bool:
    """Whether it has a number for an answer; a question that Prometheus refuses is an error."""
    return any(
        not math.isnan(float(sample["value"][1]))
        for sample in await prometheus.query(asked(question))
    )


async def shows_it_all(fleet: Composition) -> None:
    """Every question of the dashboard has an answer, every rule is evaluated, and spans have
    arrived in Jaeger.
    """
    prometheus = Prometheus(fleet.published("prometheus", 9090))
    await prometheus.until("sum(hybrid_runner_rescues_total) > 0", PATIENCE)
    fleet.psql("jobs_producer", LOOKS)
    waiting = [question for question in QUESTIONS if not WITHOUT_VALUES.search(question)]
    end = time.monotonic() + PATIENCE
    # who measures the queues may have been the one that was killed: another one does after half a
    # minute
    while waiting:
        assert time.monotonic() < end, waiting
        waiting = [question for question in waiting if not await answered(prometheus, question)]
    assert {rule["health"] for rule in await prometheus.rules()} == {"ok"}
    [ended] = await prometheus.until(
        'sum(hybrid_runner_run_duration_seconds_count{outcome="completed"})', PATIENCE
    )
    assert 0 < float(ended["value"][1]) <= JOBS
    lost = await prometheus.until(
        'ALERTS{alertname="HybridRunnerWorkersLost", alertstate="firing"}', PATIENCE
    )
    assert [alert["metric"]["queue"] for alert in lost] == ["images"]
    async with (
        aiohttp.ClientSession() as session,
        session.get(fleet.published("jaeger", 16686) + "/api/services") as response,
    ):
        assert "hybrid-runner" in (await response.json())["data"]
