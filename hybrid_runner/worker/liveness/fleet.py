"""What one worker knows of the others that live. Read and written in the heartbeat's thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from hybrid_runner.model.news import HeartbeatNews, LiveWorker, ShortestLease


class Fleet:
    """Who lives, by queue, and how often this worker has to speak in order to judge them."""

    def __init__(self, queues: Sequence[str], lease: timedelta) -> None:
        self._queues = frozenset(queues)
        self._lease = self.shortest_lease = lease
        self._listens_anew = False

    @property
    def longest_gap(self) -> timedelta:
        """After which silence of its own this worker cannot tell whether others were silent."""
        # The gaps before this one were measured by a longer lease: they say nothing.
        return timedelta(0) if self._listens_anew else self.shortest_lease / 2

    @property
    def longest_pause(self) -> float | None:
        """Seconds after which a heartbeat is needed because another worker's lease is shorter."""
        shortest = self.shortest_lease
        return shortest.total_seconds() / 3 if shortest < self._lease else None

    def spoke(self) -> None:
        """Postgres took a heartbeat, with this `longest_gap`."""
        self._listens_anew = False

    def seen(self, news: Iterable[HeartbeatNews]) -> dict[str, Mapping[str, str]]:
        """Take who lives, and the shortest lease; returns the kinds of each queue's workers, by id.

        Queues that have the same workers share one mapping, which nobody may change.
        """
        ids: defaultdict[str, list[str]] = defaultdict(list)
        kinds_of: dict[str, str] = {}
        for one in news:
            match one:
                case LiveWorker(worker_id, kinds, queues):
                    kinds_of[worker_id] = kinds
                    for queue in self._queues.intersection(queues):
                        ids[queue].append(worker_id)
                case ShortestLease(lease):
                    self._listens_anew = self._listens_anew or lease < self.shortest_lease
                    self.shortest_lease = min(lease, self._lease)
                case _:
                    pass
        groups: dict[tuple[str, ...], Mapping[str, str]] = {}
        by_queue: dict[str, Mapping[str, str]] = {}
        for queue in self._queues:
            group = tuple(ids.get(queue, ()))
            if group not in groups:
                groups[group] = {worker_id: kinds_of[worker_id] for worker_id in group}
            by_queue[queue] = groups[group]
        return by_queue
