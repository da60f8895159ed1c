"""How many jobs of each queue a worker runs at a time, where nobody says."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import check_queue
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.settings import Work


def slots_by_queue(
    registry: Registry, work: Work, queues: Mapping[str, int] | None
) -> dict[str, int]:
    """The queues that are given, checked; else those of all handlers and `default`."""
    if not queues:
        names = ["default", *(kind.queue for kind in registry)]
        return {queue: usual_slots(registry, work, queue) for queue in names}
    for queue, count in queues.items():
        check_queue(queue)
        if not 1 <= count <= 100_000:
            raise ConfigurationError(f"queue {queue!r}: slots must be 1 to 100000, not {count}")
    return dict(queues)


def usual_slots(registry: Registry, work: Work, queue: str) -> int:
    """The slots of a queue for which none are given.

    Where no handler is `async`, no more than there are threads and processes: what is claimed
    beyond that only waits here, while another worker may have a thread for it.
    """
    kinds = [kind for kind in registry if kind.queue == queue] or list(registry)
    executors = {kind.executor for kind in kinds}
    if "async" in executors:
        return work.slots
    threads = work.thread_slots if "thread" in executors else 0
    processes = work.process_slots if "process" in executors else 0
    return min(work.slots, threads + processes)
