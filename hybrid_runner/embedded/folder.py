"""The files of one embedded Postgres, and where its socket goes."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid_runner.embedded.locks import open_own
from hybrid_runner.errors import RunnerError

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
_LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@ -]+")
_ERROR_LINE = re.compile(r"(FATAL|PANIC|[Ee]rror):  ?(?!the database system is )|keeper:")
STARTING = "keeper: starting"
"""The first line of each run in the log: errors above it belong to earlier runs."""
_LOG_LIMIT = 10 * 1024 * 1024


class EmbeddedError(RunnerError):
    """The embedded Postgres cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Folder:
    """One folder; everything is in it but the socket of a folder with a long path."""

    directory: Path

    @property
    def data(self) -> Path:
        """Postgres's own data directory."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """The log of Postgres and its keeper."""
        return self.directory / "postgres.log"

    def lock(self, name: str) -> Path:
        """The file of the lock `name`; see the package's docstring."""
        return self.directory / f"{name}.lock"

    def create(self) -> None:
        """Make the folder, or say why it cannot be used."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            usable = self.directory.is_dir() and os.access(
                self.directory, os.R_OK | os.W_OK | os.X_OK
            )
            reason = "not a folder this user can write to"
        except OSError as error:
            usable, reason = False, (error.strerror or str(error)).lower()
        if not usable:
            raise EmbeddedError(self._unusable(reason))
        if (owner := self.directory.stat().st_uid) not in (0, os.geteuid()):
            # Who writes the settings of a Postgres runs programs as the user who starts it.
            raise EmbeddedError(self._unusable(f"it belongs to uid {owner}"))
        if (self.directory / "PG_VERSION").exists():
            raise EmbeddedError(self._unusable("it is the data directory of another Postgres"))

    def _unusable(self, reason: str) -> str:
        return (
            f"cannot keep a database in {self.directory} ({reason}): set HYBRID_RUNNER_DATA_DIR or"
            " HYBRID_RUNNER_DSN"
        )

    def make_socket_directory(self) -> Path:
        """The private directory for the socket: in the folder, or a short one when its path is long
        or odd.
        """
        directory = next(path for path in self._socket_directories() if _fits(path))
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(
                f"cannot make {directory} for the socket: {error.strerror}; fix it or TMPDIR"
            ) from error
        if not _is_private(directory):
            raise EmbeddedError(
                f"{directory} is not uid {os.geteuid()}'s alone (mode 0700): remove it, or set"
                " TMPDIR"
            )
        return directory

    def _socket_directories(self) -> Iterator[Path]:
        yield self.directory / "run"
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()
        name = f"hybrid-runner-{os.geteuid()}-{digest[:12]}"
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        if Path(runtime).is_absolute() and os.access(runtime, os.W_OK | os.X_OK):
            yield Path(runtime) / name
        yield Path(tempfile.gettempdir()).absolute() / name
        # TMPDIR may be long too; owner and mode are checked before use.
        yield Path("/") / "tmp" / name

    def recorded_socket_directory(self) -> Path | None:
        """The socket directory that the running server has recorded; it was chosen with the TMPDIR
        of the process that started it.
        """
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            directory = Path(lines[4])
            return directory if _is_private(directory) else None
        except (OSError, IndexError):
            return None

    def open_log(self) -> int:
        """A descriptor that appends to the log."""
        return open_own(self.log, os.O_WRONLY | os.O_APPEND)

    def bound_log(self) -> None:
        """Rename a log that is too long to postgres.log.1, in place of the one before."""
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))

    def complaint(self, trouble: str) -> EmbeddedError:
        """An error that names the log and quotes its last line about an error."""
        lines: list[str] = []
        if self.log.exists():
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 8192))
                lines = (
                    file.read().decode(errors="replace").rpartition(STARTING)[2].splitlines()[1:]
                )
        errors = [line for line in lines if _ERROR_LINE.search(line)] or lines or ["empty"]
        return EmbeddedError(f"{trouble}; see {self.log}: {errors[-1].strip()}")


def default_data_directory() -> Path:
    """The folder used when none is given."""
    if chosen := os.environ.get("HYBRID_RUNNER_DATA_DIR"):
        return Path(chosen).expanduser() / "postgres"
    if shared := os.environ.get("XDG_DATA_HOME"):
        return Path(shared) / "hybrid-runner" / "postgres"
    application_data = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
    return Path.home() / application_data / "hybrid-runner" / "postgres"


def _fits(directory: Path) -> bool:
    # A comma separates hosts in a DSN and directories in the server's setting.
    path = str(directory / SOCKET_NAME)
    return len(os.fsencode(path)) <= _LONGEST_SOCKET and _PLAIN_PATH.fullmatch(path) is not None


def _is_private(directory: Path) -> bool:
    found = directory.lstat()
    ours = found.st_uid == os.geteuid()
    return stat.S_ISDIR(found.st_mode) and ours and not found.st_mode & 0o077
