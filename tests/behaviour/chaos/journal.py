"""Files beside the Postgres under test: one line a write, appended, so that what was written
outlives its process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

FOLDER_VARIABLE = "CHAOS_FOLDER"
"""Tells workers where their files are."""
PRODUCER = "producer.jsonl"
REFUSALS = "refusals.jsonl"
"""The producer's too: what Postgres refused for want of room, which it should not."""
SIGNALS = "signals.jsonl"
"""The producer's too: each signal before it is sent."""
RUNS = "runs-{}.jsonl"
"""One for each worker process."""


class Journal:
    """A file of one process; its threads may share it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, **entry: object) -> None:
        """Append one line."""
        os.write(self._file, orjson.dumps(entry) + b"\n")

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


def entries(*paths: Path) -> Iterator[dict[str, Any]]:
    """All lines of some journals, file by file."""
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                yield orjson.loads(line)
