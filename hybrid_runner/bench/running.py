"""Runs the chosen scenarios, one after the other."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from hybrid_runner.bench.database import BenchDatabase, given_database, own_database
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.errors import RunnerError
from hybrid_runner.version import VERSION

Progress = Callable[[str, float, str], None]
"""Takes the scenario, the share of it that is done, and what comes next."""


async def run(
    names: Sequence[str], sizes: Sizes, dsn: str | None, progress: Progress
) -> dict[str, Any]:
    """The results of these scenarios and where they were measured; one that fails has its error in
    place of figures.
    """
    opened: AbstractAsyncContextManager[BenchDatabase] = (
        own_database() if dsn is None else given_database(dsn)
    )
    scenarios: dict[str, Any] = {}
    async with opened as database:
        about = await about_database(database, own=dsn is None)
        for name in names:
            progress(name, 0.0, "")
            scenarios[name] = await _measured(name, database, sizes, progress)
            progress(name, 1.0, scenarios[name].get("error", ""))
        await database.clear()
    return {"about": about, "scenarios": scenarios}


async def _measured(
    name: str, database: BenchDatabase, sizes: Sizes, progress: Progress
) -> dict[str, Any]:
    measure = import_module(f"hybrid_runner.bench.scenarios.{name}").measure
    try:
        result = await measure(database, sizes, lambda share, what: progress(name, share, what))
    except (RunnerError, OSError) as error:
        return {"figures": [], "details": {}, "error": " ".join(str(error).split())}
    document: dict[str, Any] = result.as_document()
    return document


async def about_database(database: BenchDatabase, *, own: bool) -> dict[str, Any]:
    """Versions, settings and the machine, which the figures depend on."""
    return {
        "version": VERSION,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "postgres": (await database.connection.fetchval("SHOW server_version")).split()[0],
        "fsync": await database.connection.fetchval("SHOW fsync"),
        "server": "one of our own" if own else "given by --dsn",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
    }
