"""The storage calls of rounds of monitors: each runs the file of sql/monitors/queries that has its
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.model.monitors import (
    Decision,
    Dependency,
    Event,
    Known,
    MonitorsUpkeep,
    PollAnswer,
    Recorded,
    Stopped,
    Subscription,
    Taken,
    Unchanged,
)
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value
from hybrid_runner.storage.monitor_rows import (
    read_answer,
    read_dependencies,
    read_recorded,
    read_taken,
    write_known,
    write_round,
    write_unchanged,
)
from hybrid_runner.storage.queries import query

_REFUSED = ("22023", "23514", "55P03")


async def take_round(
    on: Fetches,
    host: str,
    job_id: int,
    claim: int,
    most: int,
    known: Mapping[int, Known] = MappingProxyType({}),
) -> Taken | None:
    """What is to be polled on this host now; None: the claim is stale. Of what is `known`, and of
    which nobody has written a row since, nothing is read.
    """
    text = await fetch_value(
        on,
        "take_round",
        *(host, job_id, claim, most),
        *write_known(known.values()),
    )
    return None if text is None else read_taken(text, known)


async def begin_probes(
    on: Fetches, job_id: int, claim: int, service_ids: Sequence[int], until: datetime
) -> set[int] | None:
    """Write down, before they begin, that these services with an open breaker are probed; which may
    be. None: the claim is stale.
    """
    begun = await fetch_value(on, "begin_probes", job_id, claim, list(service_ids), until)
    return None if begun is None else set(begun)


async def dependencies_of(
    on: Fetches, service_ids: Sequence[int]
) -> dict[int, dict[str, Dependency]]:
    """What is stored of the dependencies of these services, by their names."""
    return read_dependencies(service_ids, await fetch(on, "dependencies_of", service_ids))


async def record_round(
    on: Fetches,
    host: str,
    job_id: int,
    claim: int,
    decisions: Sequence[Decision],
    stopped: Sequence[tuple[Stopped, Sequence[Event]]],
    subscriptions: Sequence[Subscription],
    *,
    keeps_polls: bool,
    last: bool,
    unchanged: Sequence[Unchanged] = (),
) -> Recorded | None:
    """Store what polls have changed, all of it or nothing; None: the claim is stale.

    What was decided of a service that has another URL by now, or is paused or gone, is dropped.
    Good polls are stored as events only with `keeps_polls`, or if somebody subscribes to them. With
    the `last` call of a run the round gives its services back, and `next_due` is known.
    """
    written = write_round(decisions, stopped, subscriptions, keeps_polls=keeps_polls)
    rows = await fetch(
        on, "record_round", host, job_id, claim, *written, last, *write_unchanged(unchanged)
    )
    return read_recorded(rows[0]) if rows else None


async def open_hosts(on: Fetches, hosts: Sequence[str] | None = None) -> int:
    """Store the jobs of those of these hosts, or of all, that have something to do and no job; how
    many.
    """
    opened: int = await fetch_value(on, "open_hosts", None if hosts is None else list(hosts))
    return opened


async def close_host(on: Fetches, host: str) -> bool:
    """Whether its job may end in the transaction of `on`: there is nothing to do, and until that
    transaction ends nobody opens it.
    """
    may_end: bool = await fetch_value(on, "close_host", host)
    return may_end


async def wake_set_back(on: Fetches) -> int:
    """Wake the rounds that wait for a time that was soon before Postgres's clock was set back; how
    many.
    """
    woken: int = await fetch_value(on, "wake_set_back")
    return woken


async def ask_poll(on: Fetches, name: str) -> int:
    """Ask for a poll of this service now; its id. ConfigurationError says why it is refused."""
    try:
        asked: int = await fetch_value(on, "ask_poll", name)
    except RunnerError as error:
        raise refused(error) from error
    return asked


async def answer_of_poll(on: Fetches, service_id: int) -> PollAnswer:
    """What became of the poll that was asked for."""
    return read_answer((await fetch(on, "answer_of_poll", service_id))[0])


async def upkeep(on: Fetches) -> MonitorsUpkeep:
    """Make partitions ahead, sum hours up, drop partitions of what is over, remove what is left of
    services that are gone. Each is a statement of its own, since none may hold a lock for long.
    """
    made, not_made = 0, None
    try:
        made = await fetch_value(on, "make_monitor_partitions")
    except RunnerError as error:  # a long transaction of a reader keeps no other step from its end
        not_made = error
    hours = 0
    while await fetch_value(on, "roll_up_hour"):
        hours += 1
    dropped = [row[0] for row in await fetch(on, "drop_monitor_partitions")]
    leftovers = await fetch_value(on, "forget_leftovers")
    renamed = await fetch_value(on, "rename_dependencies")
    if not_made is not None:
        raise not_made
    await fetch(on, "upkeep_ended")
    return MonitorsUpkeep(
        made,
        sum(what != "blocked" for what in dropped),
        sum(what == "blocked" for what in dropped),
        hours,
        leftovers,
        renamed,
    )


def hosts_with_work() -> str:
    """The query of the reconciler of rounds."""
    return query("hosts_with_work")


def one_upkeep() -> str:
    """The query of the reconciler of upkeep."""
    return query("one_upkeep")


def refused(error: RunnerError) -> RunnerError:
    """What SQL says in one line of what somebody asked for is for whoever asked."""
    if error.sqlstate not in _REFUSED:
        return error
    return ConfigurationError(str(error).removeprefix("refused: "))
