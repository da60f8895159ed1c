"""The child's end of a supervised process."""

from __future__ import annotations

import asyncio
import socket

from hybrid_runner.supervisor.supervised import ChildOrders, Supervised


async def test_an_end_that_meets_news_is_an_end() -> None:
    """On Python 3.11 `asyncio.wait_for` returned, the cancellation was lost, and the process waited
    for itself.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    supervised = Supervised(ChildOrders(theirs.detach(), None, None))
    with ours, supervised._socket:
        ours.setblocking(False)
        reporting = asyncio.create_task(supervised._report())
        await asyncio.get_running_loop().sock_recv(ours, 65536)  # it has reported, and waits
        supervised._report_now.set()
        await asyncio.sleep(0)
        reporting.cancel()
        await asyncio.wait([reporting], timeout=5)
        assert reporting.cancelled()
