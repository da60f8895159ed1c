"""Writes late rows at once, for whoever does not want to wait for a worker to do it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hybrid_runner.errors import RunnerError
from hybrid_runner.model.source_views import LateRows, SourceView
from hybrid_runner.storage import row_calls, source_records
from hybrid_runner.storage.connections.connection import Connection

_BATCH = 500
_MOST_NAMED = 5
_LATE = ("locked", "refused", "undone")
"""What has become of a row that is still late."""


async def write_late_rows(connection: Connection, view: SourceView) -> LateRows:
    """Try each of its late rows once."""
    written, late, last = 0, list[str](), ""
    while keys := await source_records.keys_of_late_rows(connection, view.id, last, _BATCH):
        last = keys[-1]
        outcomes = await _write(connection, view.id, keys)
        still = [key for key in keys if outcomes.get(key, "locked") in _LATE]
        written += len(keys) - len(still)
        late += still
    return LateRows(view.id, view.table, written, len(late), await _reasons(connection, view, late))


async def _write(connection: Connection, source: int, keys: Sequence[str]) -> dict[str, str]:
    """In halves, as long as Postgres refuses them together."""
    outcomes = await row_calls.write_late_rows(connection, source, keys)
    if len(keys) == 1 or "refused" not in outcomes.values():
        return outcomes
    half = len(keys) // 2
    first = await _write(connection, source, keys[:half])
    return first | await _write(connection, source, keys[half:])


async def _reasons(
    connection: Connection, view: SourceView, keys: Sequence[str]
) -> tuple[str, ...]:
    if not keys or view.named_now is None:
        return ()
    said = list[str]()
    with suppress(RunnerError):  # a superuser may not look into every table
        said += [
            f"{holder.session} holds row {holder.row_key[:200]}: {holder.session.remedy}"
            for holder in await row_calls.find_row_holders(connection, view.id, keys[:_MOST_NAMED])
        ]
    left = await source_records.left_of_source(connection, view.id)
    if left.why is not None:
        said.append(left.why)
    return tuple(dict.fromkeys(said))
