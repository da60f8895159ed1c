"""Single-row INSERTs as fast as many clients can, by pgbench, which needs little processor time
itself.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path

from hybrid_runner.bench.child import BenchError
from hybrid_runner.embedded import EmbeddedError
from hybrid_runner.embedded.binaries import find_binaries

_THREADS = 2


def find_pgbench() -> str | None:
    """The path of pgbench: on PATH, else beside the embedded server."""
    if found := shutil.which("pgbench"):
        return found
    try:
        beside = find_binaries().directory / "pgbench"
    except EmbeddedError:
        return None
    return str(beside) if os.access(beside, os.X_OK) else None


async def inserts_per_second(dsn: str, insert: str, clients: int, seconds: float) -> float:
    """Run a statement by so many clients; how often a second, by all of them together."""
    if (program := find_pgbench()) is None:
        raise BenchError(
            "there is no pgbench: install PostgreSQL's client programs, or hybrid-runner[embedded]"
        )
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-bench-") as folder:
        script = Path(folder) / "insert.sql"
        script.write_text(f"{insert};\n", encoding="utf-8")
        # Seconds are whole there; the count of transactions is not.
        command = [
            program,
            "-n",
            "-M",
            "prepared",
            "-f",
            str(script),
            "-c",
            str(clients),
            "-j",
            str(min(clients, _THREADS)),
        ]
        process = await asyncio.create_subprocess_exec(
            *command,
            "-T",
            str(max(1, round(seconds))),
            env=os.environ | {"PGDATABASE": dsn, "PGOPTIONS": "-c search_path=pg_catalog,pg_temp"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode(errors="replace")
    found = re.search(r"tps = ([\d.]+)", output)
    if process.returncode or found is None:
        raise BenchError(f"pgbench failed: {' '.join(output.split())[-300:]}")
    return float(found[1])
