"""The storage calls about keys and start_by: each runs the file of sql/queries of its name."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value

Place = tuple[str, int]
"""Behind which kind and id to go on."""
START: Place = ("", 0)


async def end_unbegun(
    on: Fetches, past: timedelta, behind: Place, most: int
) -> tuple[Place | None, list[int]]:
    """Read so many jobs with limits of time, and end as cancelled those that were to begin longer
    ago than this; where to go on, None at the end, and the ids of those ended.
    """
    [(kind, last_id, ended)] = await fetch(on, "end_unbegun", past, *behind, most)
    return None if kind is None else (kind, last_id), ended


async def give_free_keys(on: Fetches) -> int:
    """Wake who sleeps until a key is free that nobody has; how many there were."""
    return int(await fetch_value(on, "give_free_keys"))


async def forget_taken_keys(on: Fetches, most: int) -> int:
    """Delete keys whose `unique_for` is over; how many."""
    return int(await fetch_value(on, "forget_taken_keys", most))
