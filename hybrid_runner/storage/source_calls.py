"""The storage calls about attached tables: each runs the file of sql/queries that has its name."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_runner.model.sources import LARGEST_ROW, ShownRow
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value


async def show_claims(
    on: Fetches, claims: Sequence[tuple[int, int]], most_bytes: int = LARGEST_ROW
) -> dict[int, ShownRow]:
    """Write into the rows of these jobs (ids and claims) that they run; those that are still ours,
    with their rows until they are so many bytes together.
    """
    ids, numbers = [job_id for job_id, _ in claims], [claim for _, claim in claims]
    rows = await fetch(on, "show_claims", ids, numbers, most_bytes)
    return {shown.job_id: shown for shown in map(ShownRow._make, rows)}


async def why_late(on: Fetches, job_ids: Sequence[int]) -> str | None:
    """Why rows of these jobs could not be written; of several reasons one."""
    why: str | None = await fetch_value(on, "why_late", job_ids)
    return why


async def beat_rows(on: Fetches, claims: Sequence[tuple[int, int]]) -> int:
    """Write into rows that their jobs (ids and claims) still run; says into how many."""
    ids, numbers = [job_id for job_id, _ in claims], [claim for _, claim in claims]
    written: int = await fetch_value(on, "beat_rows", ids, numbers)
    return written
