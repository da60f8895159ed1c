"""What every duty has: a name, a period, and what it does."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import ClassVar

from hybrid_runner.storage.connections.connection import STATEMENT_TIMEOUT
from hybrid_runner.storage.connections.session_settings import FOR_UPKEEP, named
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.upkeep.constant_work import Step


class Duty(ABC):
    """One kind of periodic work. Each worker makes one object of it, which may keep state.

    `run` is called in the event loop of the heartbeat's thread: it may wait for Postgres as long as
    it likes, but must not compute for long. What it raises is logged, and it is called again when
    the duty is next given out. That happens after `every`, even if a run has not ended: several
    workers may do the duty at the same time.
    """

    name: str
    """The name of its row in hybrid_runner.duties."""
    every: timedelta
    """How often it is given out. For a held duty: how long after the holder's last renewal another
    worker is given it.
    """
    held: ClassVar[bool] = False
    """Whether it stays with the worker that was given it, which runs it every third of `every`."""
    session: ClassVar[Mapping[str, str]] = named("duties", FOR_UPKEEP)
    """Settings of the connection that is opened for it."""
    patience: ClassVar[timedelta] = timedelta(seconds=STATEMENT_TIMEOUT)
    """How long one statement may take."""

    steps: Sequence[Step] = ()
    """What the holder of a held duty does between its turns, each in a loop and on a connection of
    its own.
    """
    held_until: float = -math.inf
    """Before this time no other worker is given a held duty, by the monotonic clock; in the past
    while this worker does not hold it. Written by `HeldDuty`.
    """

    def end_hold(self) -> None:
        """Called when a held duty is no longer this worker's: another one may do it now."""
        self.held_until = -math.inf

    @abstractmethod
    async def run(self, connection: Fetches) -> object:
        """Do the duty once."""
