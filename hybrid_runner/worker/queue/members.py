"""Who works on one queue, and which of them a ring is for."""

from __future__ import annotations

import time
from collections.abc import Mapping

from hybrid_runner.policy.ring_order import AT_ONCE, EVERYBODY, Part, part, place
from hybrid_runner.worker.identity import Identity


class Members:
    """The live workers of the queue: as the last heartbeat knew them, and as messages say since."""

    def __init__(self, identity: Identity, kinds: str) -> None:
        self._identity = identity
        self._kinds = kinds
        self._last_came_at = 0.0
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
        """Whether this is the only worker of the queue."""
        return self.kinds_of.keys() <= {self._identity.id}

    @property
    def is_fleet(self) -> bool:
        """Whether there are so many workers that not all have to look at each ring."""
        return len(self.kinds_of) > EVERYBODY

    def knows(self, worker_id: str) -> bool:
        """Whether this worker is in the list."""
        return worker_id in self.kinds_of

    def add(self, worker_id: str) -> None:
        """A worker that has just come: the next heartbeat brings its kinds. Ignores this worker
        itself, whose messages come back to it.
        """
        if worker_id != self._identity.id:
            self._last_came_at = time.monotonic()
            self._set(kinds_differ=True)

    def remove(self, worker_id: str) -> None:
        """A worker has left the queue."""
        if worker_id != self._identity.id:
            # Anew, since queues with the same workers share one mapping.
            self.kinds_of = {
                other: kinds for other, kinds in self.kinds_of.items() if other != worker_id
            }
            self._set(kinds_differ=self.kinds_differ)

    def update(self, kinds_of: Mapping[str, str], asked_at: float) -> None:
        """Take the list of a heartbeat that was sent at `asked_at`."""
        self.kinds_of = kinds_of
        is_old = asked_at <= self._last_came_at
        self._set(kinds_differ=is_old or any(kinds != self._kinds for kinds in kinds_of.values()))

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
