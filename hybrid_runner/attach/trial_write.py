"""Tries what a worker writes first into a row, in a transaction that is rolled back."""

from __future__ import annotations

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.sources import Source
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.table_calls import try_row

_WHY = {"undone": "a trigger of the table undoes it", "refused": "Postgres refuses it"}


async def notes_of_trial(connection: Connection, source: Source) -> tuple[str, ...]:
    """Return a note if a wanted row cannot be set to running. Call it last: it may abort the
    transaction.
    """
    try:
        outcome = await try_row(connection, source.number)
    except RunnerError as error:
        return (f"no row could be tried: {error}",)
    if outcome not in _WHY:
        return ()
    note = (
        f"a row was tried, and cannot show {source.words.running}: {_WHY[outcome]}. The job of such"
        " a row runs once, and the row stays late"
    )
    return (note,)
