"""The workers of one queue, as the last heartbeat knew them, and which of them a ring is for."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid_runner.policy.ring_order import AT_ONCE, EVERYBODY, Part, part, place
from hybrid_runner.worker.identity import Identity


class Members:
    """The live workers of the queue. Heartbeats alone say who they are: any login can send the
    messages that say so, and they cause a heartbeat at most.
    """

    def __init__(self, identity: Identity, kinds: str) -> None:
        self._identity = identity
        self._kinds = kinds
        self.kinds_of: Mapping[str, str] = {}
        """By worker id; the texts of workers that know the same kinds are equal. Queues with the
        same workers may share it.
        """
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
        return self.kinds_of.keys() <= {self._identity.id}

    @property
    def is_fleet(self) -> bool:
        """Whether there are so many workers that not all have to look at each ring."""
        return len(self.kinds_of) > EVERYBODY

    def denies(self, worker_id: str, *, here: bool) -> bool:
        """Return whether the last heartbeat says otherwise. This worker's own messages come back to
        it, and say nothing new.
        """
        return worker_id != self._identity.id and here is not (worker_id in self.kinds_of)

    def update(self, kinds_of: Mapping[str, str]) -> None:
        """Take the list of a heartbeat."""
        self.kinds_of = kinds_of
        self.kinds_differ = any(kinds != self._kinds for kinds in kinds_of.values())
        self.share_rings = self.is_fleet and not self.kinds_differ

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
