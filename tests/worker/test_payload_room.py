"""Room for large payloads, when whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from hybrid_runner.worker.run.payloads import Payloads
from tests.worker.test_settler import claim


class NoSession:
    """Nothing is read: the payloads came with their claims."""

    async def fetch(self, _query: str, /, *args: Any) -> Any:
        raise AssertionError(args)


async def test_a_wait_for_room_that_is_cancelled_lets_others_claim_again() -> None:
    """The claimers of other queues, whose jobs waited behind it, are told that they may."""
    large = '"' + 100_000 * "x" + '"'
    payloads, told = Payloads(NoSession(), most=300_000), list[str]()
    payloads.watch(lambda: told.append("room"))
    first, second, third = (
        replace(claim(number), payload=payload, queue=queue)
        for number, payload, queue in (
            (1, large, "one"),
            (2, large, "one"),
            (3, large[:9000], "other"),
        )
    )
    await payloads.hold(first)
    waits = asyncio.create_task(payloads.hold(second))
    await asyncio.sleep(0)
    behind = asyncio.create_task(payloads.hold(third))
    await asyncio.sleep(0)
    assert payloads.room("other", lambda: 5) == 0
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)
    await behind
    assert (payloads.room("other", lambda: 5), told) == (5, ["room"])
