"""What is known of the attached tables: their names, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid_runner.model.rows import SourceState

LATE_FROM = 60.0
"""Seconds from which a late row is shown as a warning."""


class Tables:
    """Written by the duty's own turns, read by its steps; all in the heartbeat's thread but
    `known`.
    """

    def __init__(self) -> None:
        self.known: Sequence[SourceState] = ()

    def name(self, source: int) -> str:
        """The table's name as it was attached."""
        return next((one.table for one in self.known if one.id == source), f"source {source}")

    @property
    def complaints(self) -> tuple[str, ...]:
        """One line for each thing that somebody should look at."""
        return tuple(line for one in self.known for line in _complaints(one))


def _complaints(one: SourceState) -> Iterator[str]:
    if not one.is_there:
        yield (f"{one.table} was dropped, and its jobs go on: hybrid-runner detach {one.table}")
        return
    if one.refused:
        yield (
            f"Postgres refuses {one.refused} rows of {one.table}: {one.why}; after a change of the"
            " table, attach it again"
        )
    elif one.oldest >= LATE_FROM:
        yield f"{one.late} rows of {one.table} are late, one for {one.oldest:.0f} s: {one.why}"
    if not one.is_reconciled and not one.is_detaching:
        why = f": {one.note}" if one.note else ""
        yield f"rows of {one.table} that have no job are not looked for{why}"
