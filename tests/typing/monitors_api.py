"""Monitors as users write them; tests/typing/test_public_api.py checks it."""

from __future__ import annotations

from typing import assert_type

from hybrid_runner import Backoff, Job, JobKind, RetryPolicy, Runner
from hybrid_runner.model.monitors import Polled
from hybrid_runner.monitors import (
    Equals,
    Mapping,
    Monitors,
    PollError,
    PollResult,
    Secret,
    StatusChange,
)
from hybrid_runner.resilience import Breaker

app = Runner()
monitors = Monitors(
    app,
    per_host=5,
    breaker=Breaker(failures=10, cooldown="5m"),
    backoff=Backoff("1s", cap="5m"),
    secrets={"orders": Secret("token", hosts=("orders.internal",))},
    allow=("169.254.7.0/24",),
    refuse="private",
    keep_polls=True,
)
Monitors(app, refuse="all")  # type: ignore[arg-type]
Monitors("app")  # type: ignore[arg-type]


@monitors.on("status:change")
async def page(event: StatusChange) -> None:
    assert_type(event.current_healthy, bool)
    assert_type(event.id, int)


@monitors.on("poll:error", queue="pages", max_attempts=9, retry=RetryPolicy("1s"), timeout="5s")
def note(event: PollError, job: Job) -> str:
    return f"{event.service_name}: {event.error} ({job.attempt})"


assert_type(page, JobKind[StatusChange, None])
assert_type(note, JobKind[PollError, str])
monitors.on("poll:fine")  # type: ignore[arg-type]
monitors.on("poll:error", lane=1)  # type: ignore[call-arg]


async def use() -> None:
    """As an application does it."""
    mapping = Mapping(root="components", name="$key", healthy=Equals("status", "UP"))
    url = "https://orders.internal/health"
    assert_type(await monitors.add("orders", url, every="30s", mapping=mapping), int)
    await monitors.add("stock", url, depends_on="orders", labels={"team": "a"}, fail_after=3)
    await monitors.add("mail", url, interval="30s")  # type: ignore[call-arg]
    await monitors.update("orders", url=url, headers={"Authorization": "Bearer {orders}"})
    await monitors.quiet("orders", "2h")
    result = await monitors.poll("orders", timeout="1m")
    assert_type(result, PollResult)
    assert_type(result.ok, bool)
    assert_type(await monitors.preview(url, mapping), Polled)
    for line in await monitors.list(state="down"):
        assert_type(line.name, str)
