"""Writes down on which queues this worker sleeps, for many queues at once."""

from __future__ import annotations

import asyncio

from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.statements import Fetches


class Sleepers:
    """This worker's rows in the table of sleepers; `bell` is the listener's connection.

    While one statement is on its way, the next one collects: a worker of a thousand queues falls
    asleep with a few.
    """

    def __init__(self, bell: Fetches) -> None:
        self._bell = bell
        self._asked = set[str]()
        self._busy = asyncio.Lock()

    async def join(self, queue: str) -> None:
        """Return once it is committed that this worker sleeps on the queue."""
        self._asked.add(queue)
        async with self._busy:
            if queue not in self._asked:
                return  # written with those of others
            asked, self._asked = self._asked, set()
            try:
                await worker_calls.join_sleepers(self._bell, sorted(asked))
            except BaseException:
                self._asked |= asked - {queue}  # those that wait try themselves
                raise
