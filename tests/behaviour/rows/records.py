"""What runs saw, and what rows, jobs and the application's own notes say in the end, as values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.behaviour.chaos.journal import entries

SEEN = "rows-{}.jsonl"
"""One for each worker process."""
Fetch = Callable[..., Awaitable[Sequence[Any]]]
_ROWS = """
SELECT id, status, wants, how, retries, worker, started_at IS NOT NULL, finished_at IS NOT NULL,
    result::text, error
FROM shop.orders ORDER BY id
"""
_CHANGES = "SELECT order_id, wants, was, became, by FROM shop.changes ORDER BY id"
_ENDED = """
SELECT id, row_key::bigint, state::text, attempt, claim,
    coalesce(errors -> -1 ->> 'type', ''), result::text,
    extract(epoch FROM finished_at)::float8
FROM hybrid_runner.archive WHERE source IS NOT NULL ORDER BY id
"""
_LEFT = """
SELECT id, row_key::bigint, format('%s, attempt %s, due %s', state, attempt, run_at)
FROM hybrid_runner.jobs WHERE source IS NOT NULL ORDER BY id
"""
_LATE = "SELECT row_key::bigint, why FROM hybrid_runner.late_rows ORDER BY row_key"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the application's, as it stands in the end."""

    id: int
    status: str
    wants: int
    how: str
    retries: int | None
    worker: str | None
    is_started: bool
    is_finished: bool
    result: Any
    error: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """That a row's word became another."""

    row: int
    wants: int
    was: str
    became: str
    by: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A job of a row, in the archive."""

    id: int
    row: int
    state: str
    attempt: int
    claim: int | None
    last_error: str
    """Its type; empty: there is none."""
    result: Any
    at: float
    """By the server's clock, which may have been set."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: which row it saw, and how it ended."""

    name: str
    row: int
    wants: int
    id: int
    claim: int
    how: str | None = None
    """None: the process died meanwhile."""


@dataclass
class Records:
    """All that the laws judge."""

    rows: list[Row] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    left: list[tuple[int, int, str]] = field(default_factory=list)
    late: list[tuple[int, str]] = field(default_factory=list)
    retried: set[int] = field(default_factory=set)
    """Jobs that somebody retried by hand."""
    deadlocks: list[str] = field(default_factory=list)
    """What the application was told of those, which it does not make itself."""
    operations: int = 0

    def figures(self) -> Iterator[tuple[str, str]]:
        """What came of it, for people."""
        yield "statements on the application's rows", str(self.operations)
        words = Counter(row.status for row in self.rows)
        yield "rows", f"{len(self.rows)} ({_counted(words)})"
        states = Counter(job.state for job in self.ended)
        yield "jobs of rows", f"{len(self.ended)} ({_counted(states)})"
        yield "runs of these", _counted(Counter(run.how or "died" for run in self.seen))

    async def read(self, fetch: Fetch, folder: Path) -> None:
        """Add what is in the tables and files."""
        rows = [Row(*row) for row in await fetch(_ROWS)]
        self.rows = [replace(row, result=_json(row.result)) for row in rows]
        self.changes = [Change(*row) for row in await fetch(_CHANGES)]
        ended = [Ended(*row) for row in await fetch(_ENDED)]
        self.ended = [replace(job, result=_json(job.result)) for job in ended]
        self.left = [(row[0], row[1], row[2]) for row in await fetch(_LEFT)]
        self.late = [(row[0], row[1]) for row in await fetch(_LATE)]
        self.seen = read_seen(entries(*journals(folder)))


def journals(folder: Path) -> list[Path]:
    """The files of all worker processes."""
    return list(folder.glob(SEEN.format("*")))


def read_seen(lines: Iterable[dict[str, Any]]) -> list[Seen]:
    """The handlers' journals."""
    runs: dict[str, Seen] = {}
    for line in lines:
        name = line["run"]
        if line["what"] == "began":
            runs[name] = Seen(name, line["row"], line["wants"], line["id"], line["claim"])
        else:
            runs[name] = replace(runs[name], how=line["how"])
    return list(runs.values())


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counter.most_common())


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
