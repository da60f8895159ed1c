"""The storage calls of those who look after rows of attached tables: each runs the file of
sql/queries that has its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_runner.model.rows import (
    AppliedChange,
    LateRow,
    RowHolder,
    RowPlans,
    SourceState,
    StrayRow,
)
from hybrid_runner.model.upkeep import Blocker
from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value


async def find_late_rows(on: Fetches, most: int) -> list[LateRow]:
    """Rows that are to be written now."""
    return [LateRow(*row) for row in await fetch(on, "find_late_rows", most)]


async def write_late_rows(on: Fetches, source: int, keys: Sequence[str]) -> dict[str, str]:
    """Write into these rows what is true of their jobs now; what was done, by key. Rows whose job
    somebody has locked are left out.
    """
    rows = await fetch(on, "write_late_rows", source, keys)
    return {row["row_key"]: row["outcome"] for row in rows}


async def find_row_holders(on: Fetches, source: int, keys: Sequence[str]) -> list[RowHolder]:
    """Who holds these rows, as far as it can be said."""
    rows = await fetch(on, "find_row_holders", source, keys)
    return [RowHolder(row["row_key"], Blocker(*tuple(row)[1:])) for row in rows]


async def changed_sources(on: Fetches) -> list[int]:
    """Tables whose rows have had changes that their jobs do not know yet."""
    return [row["source"] for row in await fetch(on, "changed_sources")]


async def apply_row_changes(
    on: Fetches, source: int, behind: int, most: int
) -> list[AppliedChange]:
    """Do for jobs what rows of one table ask for, in the order in which that was noted."""
    rows = await fetch(on, "apply_row_changes", source, behind, most)
    return [AppliedChange(*row) for row in rows]


async def source_states(on: Fetches) -> list[SourceState]:
    """All attached tables."""
    return [SourceState(*row) for row in await fetch(on, "source_states")]


async def want_rows(
    on: Fetches, source: int, most: int, first_block: int = 0, blocks: int | None = None
) -> int:
    """Store jobs for wanted rows that have none; how many. With blocks: of that part of it."""
    return int(await fetch_value(on, "want_rows", source, most, first_block, blocks))


async def table_blocks(on: Fetches, source: int) -> int:
    """How many blocks the table of a source has, or the largest of its partitions."""
    return int(await fetch_value(on, "table_blocks", source))


async def find_stray_rows(on: Fetches, source: int, most: int) -> list[StrayRow]:
    """Rows that show running while no job of theirs does."""
    return [StrayRow(*row) for row in await fetch(on, "find_stray_rows", source, most)]


async def row_plans(on: Fetches, source: int) -> RowPlans:
    """How rows of the table that were missed would be found."""
    (row,) = await fetch(on, "row_plans", source)
    return RowPlans(*row)


async def cancel_jobs_without_rows(
    on: Fetches, source: int, after: str, most: int
) -> tuple[str | None, int]:
    """Cancel jobs whose row is gone, of so many behind a key; the last key looked at, and how many
    were cancelled.
    """
    (row,) = await fetch(on, "cancel_jobs_without_rows", source, after, most)
    return row["last_key"], row["cancelled"]
