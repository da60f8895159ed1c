"""The data directory: made whole or not at all, and of our version."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from hybrid_runner.embedded.binaries import BINARIES_VARIABLE, Binaries
from hybrid_runner.embedded.folder import EmbeddedError, Folder
from hybrid_runner.embedded.probe import NAME
from hybrid_runner.embedded.server import spawn, wait_for_earlier_server


@dataclass(frozen=True)
class Cluster:
    """The database files of one folder."""

    folder: Folder
    binaries: Binaries

    def prepare(self) -> None:
        """Leave a data directory that these binaries can open."""
        lock = wait_for_earlier_server(self.folder)
        try:
            if not self.folder.data.exists():
                self._create(lock)
            self._check_version()
        finally:
            os.close(lock)

    def _create(self, lock: int) -> None:
        unfinished = self.folder.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        where = ["-D", str(unfinished)]
        local_only = ["--auth-local=trust", "--auth-host=reject"]
        self._run(
            [self.binaries.initdb, *where, "-U", NAME, "-E", "UTF8", "--no-locale", *local_only],
            lock,
        )
        # Some wheels have neither createdb nor psql; single-user mode is always there.
        single = [self.binaries.postgres, "--single", *where, "-c", "exit_on_error=on", "template1"]
        # Who makes a table in psql means public, and not the schema that is named as his login.
        path = f'ALTER DATABASE {NAME} SET search_path = public, "$user"\n'
        self._run(single, lock, text=f"CREATE DATABASE {NAME}\n{path}")
        unfinished.rename(self.folder.data)
        _sync(self.folder.directory)

    def _run(self, command: list[str], lock: int, *, text: str = "") -> None:
        child = spawn(
            command,
            log=self.folder,
            lock=lock,
            at_our_death=signal.SIGKILL,
            text=text,
        )
        if os.waitpid(child, 0)[1] != 0:
            raise self.folder.complaint(f"{Path(command[0]).name} failed")

    def _check_version(self) -> None:
        try:
            found = (self.folder.data / "PG_VERSION").read_text().strip()
        except OSError as error:
            raise EmbeddedError(
                f"{self.folder.data} is not a Postgres data directory: move it away, or set"
                " HYBRID_RUNNER_DATA_DIR"
            ) from error
        ours = self.binaries.major_version()
        if found != ours:
            raise EmbeddedError(
                f"{self.folder.data} was made by Postgres {found}, the binaries are Postgres"
                f" {ours}: set {BINARIES_VARIABLE} to a Postgres {found} bin directory, or"
                " HYBRID_RUNNER_DATA_DIR to a new folder"
            )


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
