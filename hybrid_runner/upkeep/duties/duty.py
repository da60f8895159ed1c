"""What a duty is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from hybrid_runner.storage.connections.connection import STATEMENT_TIMEOUT
from hybrid_runner.storage.connections.session_settings import FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches


class Duty(ABC):
    """One kind of periodic work. An object of it is made once in each worker and may keep state.

    `run` is called in the heartbeat's thread, in an event loop that beats too: it may wait for
    Postgres as long as it likes, and must not compute for long. What it raises is logged, and it is
    tried again at its next turn. Several workers may be at it at once: after `every`, whether it
    has
    ended or not, it is given out again.
    """

    name: ClassVar[str]
    """Its row in hybrid_runner.duties."""
    every: ClassVar[timedelta]
    """How often it is given to a worker. A held duty: how long after the last sign of life of the
    worker that holds it another is given it."""
    held: ClassVar[bool] = False
    """A held duty stays with the worker that was given it, which runs it again and again, each time
    a third of `every` later."""
    session: ClassVar[Mapping[str, str]] = named("duties", FOR_UPKEEP)
    """Settings of its connection, which is closed when it is done."""
    patience: ClassVar[timedelta] = timedelta(seconds=STATEMENT_TIMEOUT)
    """How long a statement may take."""

    held_until: float = -math.inf
    """Written by whoever runs a held duty: before this time no other worker is given it. By the
    monotonic clock; in the past while it is not held."""

    @abstractmethod
    async def run(self, connection: Fetches) -> object:
        """Do it once."""
