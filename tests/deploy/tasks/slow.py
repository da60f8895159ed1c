"""A handler that takes long enough for its worker to be killed, stopped and joined by others
meanwhile.
"""

from __future__ import annotations

import asyncio

from hybrid_runner import Runner

app = Runner()


@app.job("slow", queue="images")
async def slow(payload: dict[str, int]) -> int:
    await asyncio.sleep(0.1)
    return payload["n"]
