"""GET /scale: how many workers the queues could use, for autoscalers. It queries Postgres, for each
queue at most once a second however many clients ask.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from hybrid_runner.errors import RunnerError
from hybrid_runner.handlers.kind import QUEUE
from hybrid_runner.model.upkeep import WorkerDemand
from hybrid_runner.storage import worker_calls
from hybrid_runner.storage.connections.session_settings import FOR_SETTLING, named
from hybrid_runner.web.database import PageConnection, PageDatabase
from hybrid_runner.web.pages.reports import Body
from hybrid_runner.web.pages.status import as_json

_FRESH = 1.0
"""Seconds for which an answer is given again to further requests."""
_PATIENCE = 3.0
_LINGER = 60.0
"""Seconds after which a connection that nobody uses is closed."""
_SESSION = named("scale", FOR_SETTLING | {"statement_timeout": "3s"})


_MOST_QUEUES = 100
"""That are asked for within a second, each by itself; anybody can make up names."""


class Asked(NamedTuple):
    """A query, and when it began by the monotonic clock."""

    task: asyncio.Task[Sequence[WorkerDemand]]
    at: float


class ScalePage:
    def __init__(self, database: PageDatabase) -> None:
        self._connection = PageConnection(
            database, "GET /scale", session=_SESSION, patience=_PATIENCE, linger=_LINGER
        )
        self._slots = database.settings.work.slots
        self._asked: dict[str | None, Asked] = {}
        """By the queue that was asked for; None: all."""

    async def close(self) -> None:
        tasks = [asked.task for asked in self._asked.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._connection.close()

    async def page(self, request: web.Request) -> web.Response:
        """The demand of all queues, or of the one in `?queue=`."""
        queue = request.query.get("queue")
        try:
            is_a_name = queue is None or QUEUE.fullmatch(queue)
            wanted = await self._ask(queue) if is_a_name else []
        except RunnerError as error:
            return as_json({"error": f"the queues cannot be counted: {error}"}, 503)
        if queue is not None and not wanted:
            return as_json({"error": f"there is no queue {queue!r}"}, 404)
        return as_json(_body(wanted), 200)

    async def _ask(self, queue: str | None) -> Sequence[WorkerDemand]:
        """Requests for the same within a second share its answer or its error; the connection runs
        one query at a time. Beyond so many queues each is looked up in the answer for all.
        """
        now = time.monotonic()
        for name, asked in list(self._asked.items()):
            if asked.task.done() and now - asked.at >= _FRESH:
                del self._asked[name]
        if queue not in self._asked:
            if queue is not None and len(self._asked) >= _MOST_QUEUES:
                return [each for each in await self._ask(None) if each.queue == queue]
            asking = worker_calls.scale(self._connection, queue, self._slots)
            self._asked[queue] = Asked(asyncio.get_running_loop().create_task(asking), now)
        return await asyncio.shield(self._asked[queue].task)


def _body(queues: Sequence[WorkerDemand]) -> Body:
    """Sums over the queues; workers and wanted are the highest, as a worker serves all queues."""
    return {
        "wanted": max((queue.wanted for queue in queues), default=0),
        "backlog": sum(queue.backlog for queue in queues),
        "running": sum(queue.running for queue in queues),
        "slots": sum(queue.slots for queue in queues),
        "workers": max((queue.workers for queue in queues), default=0),
        "queues": {
            queue.queue: {name: value for name, value in queue._asdict().items() if name != "queue"}
            for queue in queues
        },
    }
