"""What a round costs with ten thousand services."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid_runner.model.monitors import ErrorEntry, Item, Latency
from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored import ADD_MANY, PlayedRound, good, play, stored

SCANS = (
    "SELECT relname::text, seq_tup_read, seq_tup_read + coalesce(idx_tup_fetch, 0) AS read FROM"
    " pg_stat_user_tables WHERE schemaname = 'hybrid_monitors' AND relname IN ('services',"
    " 'standings', 'dependencies')"
)
HOT = (
    "SELECT n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname ="
    " 'hybrid_monitors' AND relname = 'standings'"
)
FLUSH = "SELECT pg_stat_force_next_flush()"


async def read_of(on: Connection) -> dict[str, tuple[int, int]]:
    """How many rows of each table were read by scans of all of it, and in any way."""
    await flushed(on)
    await on.execute("SELECT pg_stat_clear_snapshot()")
    return {row["relname"]: (row["seq_tup_read"], row["read"]) for row in await on.fetch(SCANS)}


async def flushed(on: Connection) -> None:
    """Statistics of this session are there for all to see."""
    if on.get_server_version().major >= 15:
        await on.execute(FLUSH)
    await on.execute("SELECT 1")


async def ten_thousand(on: Connection) -> PlayedRound:
    """Fifty hosts with two hundred services, which were all polled."""
    await on.execute(ADD_MANY, 10_000, 50)
    await on.execute(
        "INSERT INTO hybrid_monitors.standings (service_id, due_at, polled_at, ok, host, name, url)"
        " SELECT id, now(), now() - interval '30 s', true, host, name, url"
        " FROM hybrid_monitors.services"
    )
    await on.execute(
        "INSERT INTO hybrid_monitors.dependencies (service_id, name, canonical_name, healthy,"
        " last_checked) SELECT id, 'd' || n, 'd' || n, true, now() FROM hybrid_monitors.services"
        " CROSS JOIN generate_series(1, 5) AS n"
    )
    await on.execute(
        "INSERT INTO hybrid_monitors.hosts (host) SELECT DISTINCT host FROM"
        " hybrid_monitors.services"
    )
    return await play(on, "h7.internal")


async def poll_all(played: PlayedRound) -> None:
    """A round of two hundred services of which nothing has changed."""
    taken = await played.take()
    assert len(taken.services) == 200
    await played.record(
        [
            replace(
                good(each, taken.now, digest="0123456789abcdef"),
                latencies=tuple(Latency(each.id, f"d{n}", n + 5) for n in range(1, 6)),
            )
            for each in taken.services
        ]
    )
    await played.on.execute(
        "UPDATE hybrid_monitors.standings SET due_at = now() WHERE host = $1", played.host
    )


@pytest.mark.parametrize("is_analyzed", [True, False])
async def test_a_round_reads_its_own_host_and_no_whole_table(
    monitored: Connection, *, is_analyzed: bool
) -> None:
    played = await ten_thousand(monitored)
    if is_analyzed:
        await monitored.execute("ANALYZE")
    await poll_all(played)
    before = await read_of(monitored)
    assert len(before) == 3
    rounds = 8  # also with the plans that Postgres keeps
    for _ in range(rounds):
        taken = await played.take()
        assert len(taken.services) == 200
        changed = good(taken.services[0], taken.now)
        item = stored(Item("d1", healthy=False), changed.service_id, status_changed=True)
        error = ErrorEntry(changed.service_id, "d1", 1, "one")
        await played.record([replace(changed, dependencies=(item,), errors=(error,))])
        await monitored.execute(
            "UPDATE hybrid_monitors.standings SET due_at = now() WHERE service_id = $1",
            changed.service_id,
        )
    after = await read_of(monitored)
    for table, (scanned, read) in after.items():
        assert scanned == before[table][0], table
        assert 0 < read - before[table][1] < rounds * 200 * 10, table


async def test_where_a_service_stands_is_changed_in_place_and_little_is_logged(
    monitored: Connection,
) -> None:
    """200 kB a second for 333 polls are 600 bytes for each."""
    played = await ten_thousand(monitored)
    await monitored.execute("VACUUM ANALYZE")
    await poll_all(played)
    await flushed(monitored)
    moved = await monitored.fetchval(HOT)
    logged = []
    for _ in range(3):
        taken = await played.take()
        decisions = [
            replace(
                good(each, taken.now, digest="0123456789abcdef"),
                latencies=tuple(Latency(each.id, f"d{n}", n + 5) for n in range(1, 6)),
            )
            for each in taken.services
        ]
        began = await monitored.fetchval("SELECT pg_current_wal_insert_lsn()")
        await played.record(decisions)
        logged.append(
            await monitored.fetchval("SELECT pg_current_wal_insert_lsn() - $1::pg_lsn", began)
        )
        await monitored.execute(
            "UPDATE hybrid_monitors.standings SET due_at = now() WHERE host = $1", played.host
        )
    assert max(logged) / 200 < 600, logged
    await flushed(monitored)
    await monitored.execute("SELECT pg_stat_clear_snapshot()")
    assert await monitored.fetchval(HOT) == moved
