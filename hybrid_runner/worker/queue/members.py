"""Who works on one queue, and which of them a ring is for.

Heartbeats bring the list. Messages say sooner who came and who left, but anybody can send them:
what they say holds until the next heartbeat at most, and only a few times a minute if that denies
it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from hybrid_runner.policy.allowance import Allowance
from hybrid_runner.policy.ring_order import AT_ONCE, EVERYBODY, Part, part, place
from hybrid_runner.worker.identity import Identity

_MOST_CAME = 100
"""So many names that nobody knows are kept until the next heartbeat."""


class Members:
    """The live workers of the queue: as the last heartbeat knew them, and as messages say since."""

    def __init__(self, identity: Identity, kinds: str) -> None:
        self._identity = identity
        self._kinds = kinds
        self._doubts = Allowance(at_once=3, per_second=3 / 60)
        self._came: dict[str, float] = {}
        """Unknown workers that said that they came, and when: no heartbeat sent since has
        answered.
        """
        self._doubted = False
        """They are believed: one of the doubts was used up for them."""
        self._left: dict[str, float] = {}
        """Workers that are said to have left, and when: as `_came`."""
        self._stayed: set[str] = set()
        """Said to have left, and a heartbeat knew better: of them it is not believed again."""
        self._listed: Mapping[str, str] = {}
        """What the last heartbeat said; queues with the same workers may share it."""
        self.kinds_of: Mapping[str, str] = {}
        """By worker id; the texts of workers that know the same kinds are equal."""
        self.kinds_differ = True
        """True while workers of this queue know different kinds, or may. Then no worker mutes the
        doorbell, and every ring is for all.
        """
        self.share_rings = False
        """True while there are so many workers, all with the same kinds, that a ring is for some
        only.
        """

    @property
    def is_alone(self) -> bool:
        """Whether the last heartbeat knew of no other worker of the queue."""
        return self._listed.keys() <= {self._identity.id}

    @property
    def in_doubt(self) -> bool:
        """Whether newcomers that a heartbeat has not named yet are believed. A few times a minute
        at most, and until the next heartbeat.
        """
        return self._doubted

    @property
    def is_fleet(self) -> bool:
        """Whether there are so many workers that not all have to look at each ring."""
        return len(self.kinds_of) > EVERYBODY

    def came(self, worker_id: str) -> bool:
        """A worker says that it has come. True: it is not known here, so a heartbeat has to bring
        its kinds, and until then they may be others.

        This worker's own message comes back to it, and says nothing new.
        """
        if worker_id == self._identity.id or worker_id in self.kinds_of:
            return False
        now = time.monotonic()
        if len(self._came) < _MOST_CAME:
            self._came[worker_id] = now
        if not self._doubted and self._doubts.take(now):
            self._doubted = True
            self._set(kinds_differ=True)
        return True

    def left(self, worker_id: str) -> None:
        """A worker is said to have left the queue."""
        if worker_id == self._identity.id or worker_id in self._stayed:
            return
        if worker_id in self.kinds_of:
            self._left[worker_id] = time.monotonic()
            self.kinds_of = self._without_left()
            self._set(kinds_differ=self.kinds_differ)

    def update(self, kinds_of: Mapping[str, str], asked_at: float) -> None:
        """Take the list of a heartbeat that was sent at `asked_at`."""
        self._listed = kinds_of
        self._judge_departures(asked_at)
        self._judge_arrivals(asked_at)
        # A heartbeat that was sent before a worker left still has it.
        self.kinds_of = self._without_left() if self._left else kinds_of
        self._set(
            kinds_differ=self._doubted or any(kinds != self._kinds for kinds in kinds_of.values())
        )

    def _judge_departures(self, asked_at: float) -> None:
        denied = [name for name, at in self._left.items() if at < asked_at]
        self._stayed = {name for name in (*self._stayed, *denied) if name in self._listed}
        self._left = {name: at for name, at in self._left.items() if at >= asked_at}

    def _judge_arrivals(self, asked_at: float) -> None:
        answered = [name for name, at in self._came.items() if at < asked_at]
        self._came = {
            name: at
            for name, at in self._came.items()
            if at >= asked_at and name not in self._listed
        }
        if not answered:
            self._doubted = self._doubted and bool(self._came)
            return
        if self._doubted and any(name in self._listed for name in answered):
            self._doubts.give_back()
        self._doubted = bool(self._came) and self._doubts.take(time.monotonic())

    def _without_left(self) -> dict[str, str]:
        return {name: kinds for name, kinds in self._listed.items() if name not in self._left}

    def place(self, ringer: int) -> int:
        """This worker's position in the order for a ring of that server process."""
        return place(ringer, self._identity.id, self.kinds_of)

    def part(self, ringer: int) -> Part:
        """What this worker does for a ring of that server process, while rings are shared."""
        return part(self.place(ringer), len(self.kinds_of))

    def next_place(self, ringer: int) -> int | None:
        """The position to which this worker can pass a ring on; None if it is the last."""
        position = self.place(ringer) + AT_ONCE
        return position if position < len(self.kinds_of) else None

    def _set(self, *, kinds_differ: bool) -> None:
        self.kinds_differ = kinds_differ
        self.share_rings = self.is_fleet and not kinds_differ
