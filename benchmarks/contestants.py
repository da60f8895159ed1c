"""The runners that are compared, each at the settings of its own documentation: how to start it,
enqueue jobs, and count those that have not ended.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from hybrid_runner.bench import stopwatch
from hybrid_runner.bench.child import Child, started
from hybrid_runner.bench.database import BenchDatabase
from hybrid_runner.bench.texts import text

FOLDER = Path(__file__).parent
PYTHON = FOLDER / ".venv" / "bin" / "python"
NODE = FOLDER / "node_modules" / ".bin" / "node"


@dataclass(frozen=True)
class Contestant:
    """One runner with one set of settings. The texts are its SQL."""

    name: str
    command: tuple[str, ...]
    insert: str
    """Enqueues one job of the kind stamp; $1 is the text that it carries."""
    fill: str
    """Enqueues $1 (int8) jobs of the kind noop."""
    left: str
    """Counts the jobs that have not ended."""
    empty: str
    """Empties its tables."""
    tables: str
    """The tables that are vacuumed before a measurement."""
    share: float = 1.0
    """The share of a drain's jobs that it gets: slow ones would take minutes, and show no more."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def started(self, database: BenchDatabase) -> AbstractAsyncContextManager[Child]:
        """Its worker in a process, until the block ends."""
        return started(self.name, self.command, database.dsn, self.variables)

    async def clear(self, database: BenchDatabase) -> None:
        """Delete all jobs."""
        await database.connection.execute(self.empty, timeout=600)
        await self.vacuum(database)

    async def put_in(self, database: BenchDatabase, jobs: int) -> None:
        """Enqueue so many jobs in one statement."""
        await database.connection.execute(self.fill, jobs, timeout=600)
        await self.vacuum(database)

    async def vacuum(self, database: BenchDatabase) -> None:
        """Vacuum, analyse and write a checkpoint, so that none of it falls into the measurement."""
        await database.connection.execute(f"VACUUM ANALYZE {self.tables}", timeout=600)
        await database.connection.execute("CHECKPOINT", timeout=600)


async def contestants(database: BenchDatabase) -> list[Contestant]:
    """All runners; their tables are made."""
    return [
        ours(),
        *await pgqueuer(database),
        *await procrastinate(database),
        *await graphile(database),
    ]


def ours() -> Contestant:
    """All settings at their defaults."""
    return Contestant(
        "hybrid_runner",
        (sys.executable, "-m", "hybrid_runner.bench.worker"),
        insert=text("insert_stamp"),
        fill=(
            "INSERT INTO hybrid_runner.jobs (queue, kind) SELECT 'bench', 'noop' FROM"
            " generate_series(1, $1::int8)"
        ),
        left="SELECT count(*) FROM hybrid_runner.jobs",
        empty="TRUNCATE hybrid_runner.jobs, hybrid_runner.archive",
        tables="hybrid_runner.jobs",
    )


async def pgqueuer(database: BenchDatabase) -> list[Contestant]:
    """At its defaults, and with the largest batches that it was found to gain from."""
    program = (str(PYTHON), str(FOLDER / "peers" / "pgqueuer_worker.py"))
    enqueue = (await _installed("pgqueuer", (*program, "install"), database))["enqueue"]

    def enqueued(kind: str, payload: str, count: str) -> str:
        """The statement of pgqueuer itself, with arrays of so many values as parameters."""
        values = ("0", f"'{kind}'::text", payload, "'0'::interval", "NULL::text", "NULL::text")
        return re.sub(
            r"\$(\d)::",
            lambda found: f"array_fill({values[int(found[1]) - 1]}, ARRAY[{count}])::",
            enqueue,
        )

    def made(batch: int, words: str, share: float) -> Contestant:
        return Contestant(
            f"pgqueuer{words}",
            (*program, "work", str(batch)),
            insert=enqueued("stamp", "convert_to($1::text, 'UTF8')", "1"),
            fill=enqueued("noop", "NULL::bytea", "$1::int8::int"),
            left="SELECT count(*) FROM pgqueuer",
            empty="TRUNCATE pgqueuer, pgqueuer_log, pgqueuer_statistics",
            tables="pgqueuer",
            share=share,
            variables=_STOPWATCH,
        )

    return [made(10, "", 0.3), made(500, ", batch_size 500", 1.0)]


async def procrastinate(database: BenchDatabase) -> list[Contestant]:
    """At its defaults (one job at a time), and with a hundred at a time."""
    program = (str(PYTHON), str(FOLDER / "peers" / "procrastinate_worker.py"))
    await _installed("procrastinate", (*program, "install"), database)
    row = "ROW('bench', '{}', 0, NULL, NULL, {}, NULL)::procrastinate_job_to_defer_v1"
    nothing = "'{}'::jsonb"
    defer = "SELECT count(procrastinate_defer_jobs_v1(ARRAY[{}]))"

    def made(concurrency: int, words: str) -> Contestant:
        return Contestant(
            f"procrastinate{words}",
            (*program, "work", str(concurrency)),
            insert=defer.format(row.format("stamp", "jsonb_build_object('sent', $1::text)")),
            fill=(
                f"SELECT procrastinate_defer_jobs_v1(array_fill({row.format('noop', nothing)},"
                " ARRAY[$1::int8::int]))"
            ),
            left="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
            empty=(
                "TRUNCATE procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers"
            ),
            tables="procrastinate_jobs",
            share=0.1,
            variables=_STOPWATCH,
        )

    return [made(1, ""), made(100, ", concurrency 100")]


async def graphile(database: BenchDatabase) -> list[Contestant]:
    """At its plain settings, and at those of its page on performance."""
    program = (str(NODE), str(FOLDER / "peers" / "graphile_worker.mjs"))
    await _installed("graphile-worker", (*program, "install"), database)
    plain = {"concurrentJobs": 24, "maxPoolSize": 25}
    batching = plain | {
        "localQueue": {"size": 500},
        "completeJobBatchDelay": 0,
        "failJobBatchDelay": 0,
    }

    def made(options: Mapping[str, object], words: str, share: float) -> Contestant:
        return Contestant(
            f"graphile-worker{words}",
            (*program, "work", json.dumps({"preset": options})),
            insert=(
                "SELECT count(graphile_worker.add_job('stamp', json_build_object('sent',"
                " $1::text)))"
            ),
            fill=(
                "SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg("
                'json_populate_record(NULL::graphile_worker.job_spec, \'{"identifier": "noop"}\')) '
                "FROM generate_series(1, $1::int8)))"
            ),
            left="SELECT count(*) FROM graphile_worker._private_jobs",
            empty="TRUNCATE graphile_worker._private_jobs",
            tables="graphile_worker._private_jobs",
            share=share,
        )

    return [made(plain, ", 24 at a time", 0.2), made(batching, ", localQueue 500", 1.0)]


async def _installed(
    name: str, command: tuple[str, ...], database: BenchDatabase
) -> dict[str, str]:
    """Run an installer; its answer."""
    async with started(name, command, database.dsn, _STOPWATCH, says_ready=False) as child:
        return await child.answer()


_STOPWATCH = {"PYTHONPATH": str(Path(stopwatch.__file__).parent)}
