"""The kinds of jobs that monitors are made of, and the reconcilers that restore them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel, Field

from hybrid_runner.handlers.job import Job
from hybrid_runner.model.monitors import OPEN_KIND, QUEUE, ROUND_KIND, UPKEEP_KIND, host_key
from hybrid_runner.model.outcomes import Cancel, Repeat
from hybrid_runner.monitors.app import App
from hybrid_runner.monitors.closing import end_if_idle
from hybrid_runner.monitors.round import Round, Rounds
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.storage import monitor_calls

UPKEEP_EVERY: Final = "1m"
IDLE: Final = timedelta(minutes=10)
"""So long a host without active services keeps its job."""
_QUICK: Final = RetryPolicy("1s", cap="15s")
_UPKEEP_KEY: Final = "monitors.upkeep"
_SHORTLY: Final = "10m"
"""So long ended jobs are kept: there are many, and they say little."""


class Host(BaseModel):
    """What a round is about."""

    host: str


class Hosts(BaseModel):
    """Hosts of which somebody has changed services; none: look at all."""

    hosts: list[str] = Field(default_factory=list)


def declare_kinds(app: App, rounds: Rounds) -> None:
    """Make them known to the application."""

    @app.job(
        ROUND_KIND,
        queue=QUEUE,
        max_attempts=100,
        timeout="4m",
        retry=_QUICK,
        keep_completed=_SHORTLY,
    )
    async def round_of_host(payload: Host, job: Job) -> Repeat | None:
        if job.key != host_key(payload.host):
            raise Cancel(f"it is not the round of a host: its key is not monitors:{payload.host}")
        slots = app.registry.slots[job.queue]
        again = await Round(rounds, await app.pool(), payload.host, job, slots).run()
        if again is not None:
            return again
        if job.timed_out and await end_if_idle(app, payload.host, job):
            return None
        return Repeat(IDLE, wake_on=job.key)

    @app.job(OPEN_KIND, queue=QUEUE, timeout="5m", retry=_QUICK, keep_completed=_SHORTLY)
    async def open_hosts(payload: Hosts) -> int:
        return await monitor_calls.open_hosts(await app.pool(), payload.hosts or None)

    @app.job(UPKEEP_KIND, queue=QUEUE, timeout="10m", retry=_QUICK)
    async def upkeep(_: dict[str, Any], job: Job) -> Repeat | None:
        await monitor_calls.upkeep(await app.pool())
        # Any producer may store others, which are not to stay for ever.
        return Repeat(UPKEEP_EVERY, wake_on=job.key) if job.key == _UPKEEP_KEY else None

    @app.reconcile("1m", kind=round_of_host, key="monitors:{host}")
    def monitored_hosts() -> str:
        return monitor_calls.hosts_with_work()

    @app.reconcile("1m", kind=upkeep, key="monitors.{one}")
    def monitors_upkeep() -> str:
        return monitor_calls.one_upkeep()
