"""Jobs that ended long ago, and partitions of that time."""

from __future__ import annotations

from hybrid_runner.model.jobs import State
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.upkeep.duties.prune import Prune

_AGED = """
    INSERT INTO hybrid_runner.archive
        (id, queue, kind, priority, payload, run_at, state,
         attempt, snoozes, version, created_at, finished_at)
    SELECT nextval('hybrid_runner.jobs_id_seq'), 'default', $1, 5, '{}', now(),
        $2::text::hybrid_runner.job_state, 1, 0, 1, now(),
        date_trunc('hour', now()) - make_interval(mins => $3)
    FROM generate_series(1, $4::int)
    RETURNING id
"""


async def aged(
    connection: Connection,
    minutes: int,
    state: State = State.COMPLETED,
    kind: str = "work",
    count: int = 1,
) -> list[int]:
    """Jobs that ended so long before this hour began."""
    return [row[0] for row in await connection.fetch(_AGED, kind, state, minutes, count)]


async def partition(connection: Connection, half: str, opens: int, closes: int) -> str:
    """A partition from so many minutes before this hour to so many, as if it had been made then."""
    await connection.execute(
        "SELECT hybrid_runner.add_archive_partition($1, date_trunc('hour', now()) -"
        " make_interval(mins => $2), date_trunc('hour', now()) - make_interval(mins => $3)) WHERE"
        " NOT EXISTS (SELECT FROM hybrid_runner.archive_partitions WHERE half = $1 AND upper ="
        " date_trunc('hour', now()) - make_interval(mins => $3))",
        half,
        opens,
        closes,
    )
    name = await connection.fetchval(
        "SELECT partition FROM hybrid_runner.archive_partitions "
        "WHERE half = $1 AND upper = date_trunc('hour', now()) - make_interval(mins => $2)",
        half,
        closes,
    )
    return str(name)


async def exists(connection: Connection, table: str) -> bool:
    """Whether there is a table of that name."""
    return bool(
        await connection.fetchval(
            "SELECT to_regclass('hybrid_runner.' || $1::text) IS NOT NULL", table
        )
    )


async def known(connection: Connection, ids: list[int]) -> list[int]:
    """Which of these jobs can still be read, one by one and by those who wait."""
    found = [job for job in ids if await client_calls.get_job(connection, job)]
    assert sorted(status.id for status in await client_calls.watch_jobs(connection, ids)) == found
    return found


async def pruned(connection: Connection) -> list[tuple[str, str]]:
    """One round: what was done to which partition."""
    return [(one.what, one.partition) for one in await Prune().run(connection)]


async def keep(connection: Connection, state: State, time: str | None, kind: str = "") -> None:
    """Say how long jobs that ended so stay."""
    await connection.execute(
        "SELECT hybrid_runner.keep($1, $2::text::interval, $3)", state, time, kind
    )
