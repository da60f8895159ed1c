"""An app whose jobs end in every way, and a trace for them."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace

from hybrid_runner import Cancel, Fail, Job, Retry, Runner, Snooze
from hybrid_runner.handlers.registry import Registry
from tests.support.working import runner

TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
TRACEPARENT = f"00-{TRACE:032x}-{PARENT:016x}-01"


def tasks(dsn: str, **settings: Any) -> Runner:
    """An app with a handler for each outcome."""
    app = runner(dsn, Registry(), **settings)

    @app.job("note")
    async def note(_: Any) -> None:
        trace.get_current_span().set_attribute("noted", True)

    @app.job("rest", max_attempts=3)
    async def rest(_: Any, job: Job) -> Snooze | Retry | None:
        if job.data is None:
            return Snooze("10ms", data={"rested": True})
        return Retry("10ms", "not yet") if job.attempt == 1 else None

    @app.job("raise", max_attempts=1)
    async def fail(_: Any) -> None:
        raise ValueError("no such thing")

    @app.job("refuse")
    async def refuse(_: Any) -> Fail:
        return Fail("not today")

    @app.job("give_up")
    async def give_up(_: Any) -> Cancel:
        return Cancel("nobody wants it")

    @app.job("follow")
    async def follow(_: Any) -> int:
        return (await app.enqueue("note")).id

    return app
