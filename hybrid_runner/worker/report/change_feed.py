"""Publishes the ids of jobs that changed while an event stream is being read; otherwise does
nothing.

The messages are hints that may be lost: readers ask the database for the state of a job.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.events import BatchSettled, LookMade, Observer
from hybrid_runner.model.messages import Channel, JobsChanged, JobsRead
from hybrid_runner.model.settlements import Settlement
from hybrid_runner.policy.allowance import Allowance
from hybrid_runner.storage import stream_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.worker.paced import Paced

PAUSE = 0.04
"""Seconds between two rounds of messages: changes in between are sent together."""
MOST_IDS = 380
"""Ids in one message, which may have 8000 bytes: an id has 19 digits at most. A round has one
message for each queue and kind.
"""

Send = Callable[[Channel[JobsChanged], JobsChanged], Awaitable[None]]


class ChangeFeed(Observer):
    """Belongs to the worker's loop. `send` sends a message, `soon` runs a coroutine in the
    background.
    """

    def __init__(
        self, on: Fetches, send: Send, soon: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._on = on
        self._send = send
        self._soon = soon
        self._ask = Paced(lambda: soon(self.ask_for_readers()), Allowance(at_once=3, per_second=1))
        self._loop = asyncio.get_running_loop()
        self._channel: Channel[JobsChanged] | None = None
        """Where readers hear of changes, once the database has been asked."""
        self._readers_until = 0.0
        self._changed: dict[tuple[str, str], set[int]] = {}
        self._left_out: dict[tuple[str, str], int] = {}
        self._sending = False

    @property
    def has_readers(self) -> bool:
        """Whether an event stream is being read, as far as this worker has heard."""
        return time.monotonic() < self._readers_until

    def announced(self, _message: JobsRead, _sender: int) -> None:
        """Somebody says that event streams are read. Anybody can: the database knows."""
        self._ask()

    async def ask_for_readers(self) -> None:
        """Ask the database until when event streams are read."""
        with contextlib.suppress(RunnerError):
            readers = await stream_calls.stream_readers(self._on)
            self._channel = readers.channel
            self._readers_until = time.monotonic() + readers.left.total_seconds()

    def on_look(self, look: LookMade) -> None:
        if look.claims:
            self.note(look.claims)

    def on_settled(self, batch: BatchSettled) -> None:
        if self.has_readers:
            self.note([settlement.claim for settlement in (*batch.settled, *batch.stale)])

    def on_rescued(self, settled: Sequence[Settlement]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and so is all else
            self._loop.call_soon_threadsafe(self.note, [settlement.claim for settlement in settled])

    def note(self, claims: Sequence[Claim]) -> None:
        """Publish soon that these jobs have changed."""
        if not claims or not self.has_readers:
            return
        for claim in claims:
            name = (claim.queue, claim.kind)
            ids = self._changed.setdefault(name, set())
            if len(ids) < MOST_IDS:
                ids.add(claim.id)
            elif claim.id not in ids:
                self._left_out[name] = self._left_out.get(name, 0) + 1
        if not self._sending:
            self._sending = True
            self._soon(self._send_rounds())

    async def _send_rounds(self) -> None:
        try:
            while self._changed:
                changed, self._changed = self._changed, {}
                left_out, self._left_out = self._left_out, {}
                for (queue, kind), ids in changed.items():
                    more = left_out.get((queue, kind), 0)
                    await self._publish(JobsChanged(queue, kind, more, tuple(ids)))
                await asyncio.sleep(PAUSE)
        finally:
            self._sending = False

    async def _publish(self, change: JobsChanged) -> None:
        if self._channel is not None:
            await self._send(self._channel, change)
