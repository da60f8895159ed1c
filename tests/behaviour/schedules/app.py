"""The app of these workers: a job that does nothing."""

from __future__ import annotations

from typing import Any

from hybrid_runner import Runner

app = Runner()


@app.job("tick")
async def tick(payload: Any) -> None:
    pass
