"""The app of the tests of memory: its jobs carry much and take a moment."""

from __future__ import annotations

import asyncio

from hybrid_runner import Runner

app = Runner()


@app.job("large")
async def large(payload: object) -> None:
    await asyncio.sleep(3)


@app.job("large.elsewhere", queue="elsewhere")
async def elsewhere(payload: object) -> None:
    await asyncio.sleep(3)
