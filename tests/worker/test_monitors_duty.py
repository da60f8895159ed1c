"""The duty `monitors`: one worker measures monitored services for the whole fleet."""

from __future__ import annotations

import time

import pytest

from hybrid_runner.model.monitor_views import MonitorMeasures
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics import monitor_instruments as table
from hybrid_runner.upkeep.duties.monitors import Monitors, complaints_of
from tests.support.monitored_pages import Monitored
from tests.support.waiting import until
from tests.support.working import runner, working

LATE = (
    "UPDATE hybrid_monitors.standings SET due_at = now() - interval '5 minutes'"
    " WHERE service_id = $1"
)


def held(duty: Monitors) -> Monitors:
    duty.held_until = time.monotonic() + 60
    return duty


def measures(late: int = 0, oldest: float = 0.0, age: float | None = 5.0) -> MonitorMeasures:
    return MonitorMeasures(3, 1, 0, 1, 0, late, oldest, age)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (measures(), []),
        (measures(1, 60.0), []),
        (measures(1, 61.0), ["1 service is due and not polled, one for 1m1s"]),
        (measures(1200, 3600.0), ["1,200 services are due and not polled, one for 1h"]),
        (measures(age=900), []),
        (measures(age=901), ["the upkeep of monitors last ended 15m1s ago"]),
        (measures(age=None), []),
        (measures(2, 70.0, None), ["2 services are", "the upkeep of monitors has never run"]),
        (MonitorMeasures(0, 0, 0, 0, 0, 0, 0.0, None), []),
    ],
)
def test_what_is_wrong_is_named(seen: MonitorMeasures, said: list[str]) -> None:
    found = complaints_of(seen)
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


async def test_what_is_measured_is_what_there_is(monitored: Connection) -> None:
    here = Monitored(monitored)
    strange = await here.up("a")
    await monitored.execute(
        "UPDATE hybrid_monitors.standings SET warnings = '[\"2 items\"]' WHERE service_id = $1",
        strange,
    )
    late = await here.down("b", "timeout")
    await here.add("never polled, just made")
    await monitored.execute(LATE, late)
    await monitored.execute("UPDATE hybrid_monitors.upkeep_runs SET ended_at = now()")
    duty = Monitors()
    await duty.run(monitored)
    assert (duty.complaints, duty.metric_values()) == (None, {})
    values = held(duty).metric_values()
    assert values[table.MONITOR_SERVICES.name] == {("closed",): 2, ("open",): 1, ("half_open",): 0}
    assert values[table.MONITOR_DOWN.name] == {(): 1}
    assert values[table.MONITOR_WARNED.name] == {(): 1}
    assert values[table.MONITOR_LATE.name] == {(): 1}
    oldest = values[table.MONITOR_LATE_OLDEST.name][()]
    age = values[table.MONITOR_UPKEEP_AGE.name][()]
    assert isinstance(oldest, float)
    assert isinstance(age, float)
    assert 300 <= oldest < 400
    assert 0 <= age < 100
    assert "1 service is due" in str(duty.complaints)
    duty.end_hold()
    assert (duty.complaints, duty.metric_values()) == (None, {})


async def test_paused_services_are_not_late(monitored: Connection) -> None:
    here = Monitored(monitored)
    await monitored.execute(LATE, await here.down("a"))
    await monitored.execute("UPDATE hybrid_monitors.services SET active = false")
    duty = held(Monitors())
    await duty.run(monitored)
    assert duty.metric_values()[table.MONITOR_LATE.name] == {(): 0}
    assert duty.complaints == ()


async def test_dropped_monitors_are_no_complaint(monitored: Connection) -> None:
    duty = held(Monitors())
    await duty.run(monitored)
    await monitored.execute("DROP SCHEMA hybrid_monitors CASCADE")
    await duty.run(monitored)
    assert (duty.complaints, duty.metric_values()) == (None, {})


async def test_a_worker_measures_where_monitors_are_installed(
    monitored: Connection, monitors_dsn: str
) -> None:
    here = Monitored(monitored)
    await monitored.execute(LATE, await here.down("a"))
    app = runner(monitors_dsn, heartbeat=0.1)

    @app.job("work")
    async def work(payload: dict[str, int]) -> None:
        pass

    async with working(app) as worker:
        found = await until(worker.status, lambda seen: bool(seen.vitals.monitors))
    assert found.vitals.monitors is not None
    assert "1 service is due and not polled" in found.vitals.monitors[0]
    assert found.metric_values[table.MONITOR_DOWN.name] == {(): 1}
