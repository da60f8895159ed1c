"""The storage calls about attached tables: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_runner.model.sources import ShownRow
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value


async def show_claims(on: Fetches, claims: Sequence[tuple[int, int]]) -> dict[int, ShownRow]:
    """Write into the rows of these jobs (ids and claims) that they run; what was done with those
    that are still ours.
    """
    ids, numbers = [job_id for job_id, _ in claims], [claim for _, claim in claims]
    rows = await fetch(on, "show_claims", ids, numbers)
    return {shown.job_id: shown for shown in (ShownRow(*row) for row in rows)}


async def read_rows(
    on: Fetches, source: int, keys: Sequence[str], most_bytes: int
) -> dict[str, tuple[str | None, int]]:
    """Return sizes of rows, and their JSON up to `most_bytes` together."""
    rows = await fetch(on, "read_rows", source, keys, most_bytes)
    return {row["row_key"]: (row["payload"], row["size"]) for row in rows}


async def beat_rows(on: Fetches, claims: Sequence[tuple[int, int]]) -> int:
    """Write into rows that their jobs (ids and claims) still run; says into how many."""
    ids, numbers = [job_id for job_id, _ in claims], [claim for _, claim in claims]
    written: int = await fetch_value(on, "beat_rows", ids, numbers)
    return written
