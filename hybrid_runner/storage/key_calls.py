"""The storage calls about keys and start_by: each runs the file of sql/queries of its name."""

from __future__ import annotations

from datetime import timedelta

from hybrid_runner.storage.connections.statements import Fetches, fetch, fetch_value


async def end_unbegun(on: Fetches, past: timedelta, most: int) -> list[int]:
    """End jobs as cancelled that were to begin longer ago than this; the ids of those ended."""
    return [row[0] for row in await fetch(on, "end_unbegun", past, most)]


async def give_free_keys(on: Fetches) -> int:
    """Wake who sleeps until a key is free that nobody has; how many there were."""
    return int(await fetch_value(on, "give_free_keys"))


async def forget_taken_keys(on: Fetches, most: int) -> int:
    """Delete keys whose `unique_for` is over; how many."""
    return int(await fetch_value(on, "forget_taken_keys", most))
