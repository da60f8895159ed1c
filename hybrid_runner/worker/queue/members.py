"""Who works on one queue, and which of them a ring is for."""

from __future__ import annotations

import time

from hybrid_runner.policy.ring_order import AT_ONCE, EVERYBODY, Part, part, place
from hybrid_runner.worker.identity import Identity


class Members:
    """The live workers of the queue as the last heartbeat knew them, and since then heard of."""

    def __init__(self, identity: Identity, kinds: str) -> None:
        self._identity = identity
        self._kinds = kinds
        self._newcomer_at = 0.0
        self.kinds_of: dict[str, str] = {}
        """By worker id: a text that is the same for workers that know the same kinds."""
        self.kinds_differ = True
        """Some know other kinds than this worker, or may. Then nobody may speak for the others, by
        a
        mute or by looking for them, and every ring is for all."""
        self.share_rings = False
        """They are so many, and know the same kinds, that a ring is for some of them only."""

    @property
    def is_alone(self) -> bool:
        """Whether nobody else works on the queue."""
        return self.kinds_of.keys() <= {self._identity.id}

    @property
    def is_fleet(self) -> bool:
        """Whether they are so many that not all have to look at each ring."""
        return len(self.kinds_of) > EVERYBODY

    def knows(self, worker_id: str) -> bool:
        """Whether it is one of them."""
        return worker_id in self.kinds_of

    def add_newcomer(self, worker_id: str) -> None:
        """Somebody whose kinds the next heartbeat brings; our own messages come back to us."""
        if worker_id != self._identity.id:
            self._newcomer_at = time.monotonic()
            self._set(kinds_differ=True)

    def remove(self, worker_id: str) -> None:
        """It says that it ends."""
        if worker_id != self._identity.id:
            self.kinds_of.pop(worker_id, None)
            self._set(kinds_differ=self.kinds_differ)

    def update(self, kinds_of: dict[str, str], asked_at: float) -> None:
        """What a heartbeat that was sent at that time knew."""
        self.kinds_of = kinds_of
        is_old = asked_at <= self._newcomer_at
        self._set(kinds_differ=is_old or any(kinds != self._kinds for kinds in kinds_of.values()))

    def place(self, ringer: int) -> int:
        """Where this worker stands in the order for a ring of that server process."""
        return place(ringer, self._identity.id, self.kinds_of)

    def part(self, ringer: int) -> Part:
        """What this worker does for a ring, if they share them."""
        return part(self.place(ringer), len(self.kinds_of))

    def next_place(self, ringer: int) -> int | None:
        """To whom a ring that was for this worker can be passed on; None: nobody is left."""
        position = self.place(ringer) + AT_ONCE
        return position if position < len(self.kinds_of) else None

    def _set(self, *, kinds_differ: bool) -> None:
        self.kinds_differ = kinds_differ
        self.share_rings = self.is_fleet and not kinds_differ
