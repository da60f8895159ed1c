"""What an application does with its own tables: attaching them, looking at them, detaching them.

What that takes is imported when it is asked for: a worker never does, and starts sooner without.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from hybrid_runner.attach.options import AttachOptions, given
from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.source_views import Attached, Detached, SourceView
from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.storage import source_records
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.migrations import require_schema

if TYPE_CHECKING:
    from hybrid_runner.attach.definitions import Given


class SourceCalls:
    """The part of `Runner` that is about existing tables."""

    registry: Registry

    if TYPE_CHECKING:

        async def connect(self, wait: Duration | None = None) -> Connection: ...

    async def attach(
        self,
        table: str,
        *,
        kind: JobKind[Any, Any] | str,
        words: Words | Given = None,
        columns: Columns | Given = None,
        **options: Unpack[AttachOptions],
    ) -> Attached:
        """Make an existing table a source of jobs: rows that are wanted are worked on, and show
        what became of them. Attached again, everything is made anew.

        Once, as a migration would, never as a worker starts. The options are explained in
        `AttachOptions` and docs/sources.md. `words` and `columns` may be mappings of the fields
        that are known, if the rest is to be guessed.
        """
        from hybrid_runner.attach import attaching  # noqa: PLC0415
        from hybrid_runner.attach.definitions import (  # noqa: PLC0415
            completed,
            definition_of,
            known_fields,
        )
        from hybrid_runner.attach.guess import guess  # noqa: PLC0415

        chosen = given(options)
        longest = parse_duration(chosen.pop("wait", "1m")).total_seconds()
        modes = {name for name in ("check", "sql") if chosen.pop(name, False)}
        guesses = chosen.pop("guess", False)
        if len(modes) > 1:
            raise ConfigurationError("attach has either `check` or `sql`, not both")
        async with self._connected(attaches=True) as connection:
            took: tuple[str, ...] = ()
            if guesses:
                words, columns, took = await guess(
                    connection, table, known_fields(words), known_fields(columns)
                )
            definition = definition_of(
                self.registry,
                table,
                kind,
                completed(Words, words),
                completed(Columns, columns),
                chosen,
            )
            make = attaching.attach
            if modes:
                make = attaching.check_only if "check" in modes else attaching.as_script
            attached = await make(connection, self.connect, definition, longest=longest)
        return replace(attached, guessed=took)

    async def detach(
        self,
        table: str,
        *,
        kind: str | None = None,
        cancel_jobs: bool = False,
        wait: Duration = "30s",
    ) -> Detached:
        """Leave the table as it was before it was attached. Queued jobs are ended, and their rows
        keep the queued word; running ones have so long to end, and are told to stop with
        `cancel_jobs`. Workers write what the rows do not show yet. What has not ended by then is a
        RunnerError: detach again.
        """
        from hybrid_runner.attach import detaching  # noqa: PLC0415

        async with self._connected(attaches=True) as connection:
            return await detaching.detach(
                connection,
                self.connect,
                table,
                kind,
                cancels=cancel_jobs,
                longest=parse_duration(wait).total_seconds(),
            )

    async def sources(self) -> Sequence[SourceView]:
        """The attached tables."""
        async with self._connected() as connection:
            return await source_records.list_sources(connection)

    async def source(self, table: str, *, kind: str | None = None) -> SourceView:
        """One of them, by its name or its number, and whether it could be attached again as it is;
        ConfigurationError unless it is attached.
        """
        from hybrid_runner.attach import attaching, detaching  # noqa: PLC0415

        async with self._connected() as connection:
            view = await detaching.the_source(connection, table, kind)
            return await attaching.with_fault(connection, self.connect, view)

    # --- inside

    @asynccontextmanager
    async def _connected(self, *, attaches: bool = False) -> AsyncIterator[Connection]:
        connection = await self.connect()
        try:
            if attaches:
                from hybrid_runner.attach.table_checks import (  # noqa: PLC0415
                    check_schema_rights,
                )

                await check_schema_rights(connection)
            await require_schema(connection)
            yield connection
        finally:
            await connection.close()
