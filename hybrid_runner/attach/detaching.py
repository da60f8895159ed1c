"""Detaches a table: its triggers first, and the rest once its last jobs have ended. Rows are left
to workers, so that nothing of the table's owner runs in the session that detaches.
"""

from __future__ import annotations

import asyncio
import time

from hybrid_runner.attach.rendering import dropping_rest, dropping_triggers
from hybrid_runner.errors import ConfigurationError, RunnerError
from hybrid_runner.model.source_views import Detached, LeftOfSource, SourceView
from hybrid_runner.storage import source_records
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.lock_waits import Connects
from hybrid_runner.storage.table_changes import change_tables, run_statements

_BATCH = 1_000
"""Queued jobs that are ended in one statement."""
_LOOK_EVERY = 0.2


async def detach(
    connection: Connection,
    connects: Connects,
    table: str,
    kind: str | None,
    *,
    cancels: bool,
    longest: float,
) -> Detached:
    """Detach a table. What runs has `longest` seconds to end, and so has who holds a lock; what was
    done by then stays, and detaching again goes on.
    """
    view = await the_source(connection, table, kind)
    runner = await source_records.find_runner_owner(connection)
    reason = f"{view.table} was detached"

    async def begin() -> None:
        await source_records.begin_detaching(connection, view.id)
        await run_statements(connection, dropping_triggers(view.id, runner))

    async def end() -> bool:
        gone = await source_records.forget_source(connection, view.id)
        if gone:
            await run_statements(connection, dropping_rest(view.id, runner))
        return gone

    await change_tables(begin, connection, connects, longest=longest, what="detach")
    cancelled, left = await _drained(connection, view, reason, cancels=cancels, longest=longest)
    if not await change_tables(end, connection, connects, longest=longest, what="detach"):
        raise RunnerError(f"{view.table} was attached again meanwhile: it stays attached")
    return Detached(view.id, view.table, view.kind, cancelled, tuple(_notes(view, left)))


async def _drained(
    connection: Connection, view: SourceView, reason: str, *, cancels: bool, longest: float
) -> tuple[int, LeftOfSource]:
    """Return once no job is left, and every row shows what became of its job that can: how many
    queued ones were ended, and what is left. RunnerError if that takes too long.
    """
    cancelled = 0
    ends = time.monotonic() + longest
    while True:
        cancelled += await _cancel_queued(connection, view.id, reason)
        if cancels:
            await source_records.cancel_running_of_source(connection, view.id, reason)
        left = await source_records.left_of_source(connection, view.id)
        if _is_over(left, view):
            return cancelled, left
        if time.monotonic() > ends:
            raise RunnerError(_unfinished(view, left))
        await asyncio.sleep(_LOOK_EVERY)


async def _cancel_queued(connection: Connection, source: int, reason: str) -> int:
    cancelled = 0
    while batch := await source_records.cancel_queued_of_source(connection, source, reason, _BATCH):
        cancelled += batch
    return cancelled


async def the_source(connection: Connection, table: str, kind: str | None) -> SourceView:
    """The source that somebody means; ConfigurationError unless there is exactly one."""
    found = await source_records.which_sources(connection, table, kind)
    if not found:
        raise ConfigurationError(await _unknown(connection, table, kind))
    if len(found) > 1:
        choices = " or ".join(f"{number} (kind {kind})" for number, kind in found)
        raise ConfigurationError(
            f"{table} is attached {len(found)} times: name the source by its number, {choices}"
        )
    [(number, _)] = found
    return next(view for view in await source_records.list_sources(connection) if view.id == number)


async def _unknown(connection: Connection, table: str, kind: str | None) -> str:
    attached = [view.table for view in await source_records.list_sources(connection)]
    which = f"{table} is not attached" + (f" for kind {kind}" if kind is not None else "")
    return f"{which}: attached are {', '.join(attached)}" if attached else f"{which}: no table is"


def _is_over(left: LeftOfSource, view: SourceView) -> bool:
    # Of a table that is gone no row can be written any more.
    return not left.jobs and (not left.late or view.named_now is None)


def _unfinished(view: SourceView, left: LeftOfSource) -> str:
    if left.job_id is not None:
        where = f" on worker {left.worker_id}" if left.worker_id else ""
        what = f"running jobs are left: {left.jobs} (job {left.job_id}{where})"
        remedy = "detach again once they have ended, or tell them to stop with --cancel-jobs"
    elif left.jobs:
        what = f"jobs are left that other transactions hold: {left.jobs}"
        remedy = "detach again once those have ended"
    elif left.has_worker:
        what = f"rows do not show yet what became of their jobs: {left.late} ({left.why})"
        remedy = "detach again once a worker has written them"
    else:
        what = f"rows do not show yet what became of their jobs: {left.late}"
        remedy = "no worker is there to write them: start one, and detach again"
    return f"{view.table} is not detached yet: its triggers are gone, but {what}; {remedy}"


def _notes(view: SourceView, left: LeftOfSource) -> list[str]:
    late = left.late + left.refused
    if not late:
        return []
    why = "the table is gone" if view.named_now is None else left.why
    return [f"rows that do not show what became of their jobs: {late} ({why})"]
