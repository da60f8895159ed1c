"""The data directory: made whole or not at all, of our version, owned by the account that runs
Postgres.
"""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from hybrid_runner.embedded.account import NOBODY, Account, accepted_account, allows
from hybrid_runner.embedded.binaries import BINARIES_VARIABLE, Binaries
from hybrid_runner.embedded.folder import EmbeddedError, Folder
from hybrid_runner.embedded.probe import NAME
from hybrid_runner.embedded.server import spawn, wait_for_earlier_server


@dataclass(frozen=True)
class Cluster:
    """The database files of one folder."""

    folder: Folder
    binaries: Binaries
    account: Account

    def prepare(self) -> None:
        """Leave a data directory these binaries and this account can open."""
        lock = wait_for_earlier_server(self.folder)
        try:
            if not self.folder.data.exists():
                self._create(lock)
            self._check_version()
            self._own()
        finally:
            os.close(lock)

    def _create(self, lock: int) -> None:
        unfinished = self.folder.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        os.chown(unfinished, self.account.owner, -1)
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
            self.account,
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

    def _own(self) -> None:
        """Give root's files to uid 65534, if Postgres is to run as that; never the other way."""
        if os.geteuid() != 0 or self.folder.data.lstat().st_uid == self.account.owner:
            return
        for parent, directories, files in os.walk(self.folder.data):
            for name in (*directories, *files):
                os.lchown(Path(parent) / name, self.account.owner, self.account.owner)
        # Last: an interrupted change of owner starts again.
        os.chown(self.folder.data, self.account.owner, self.account.owner)


def account_for(folder: Folder) -> Account:
    """The account to run this folder's Postgres as. Files that were once uid 65534's stay its: it
    may have written into them what root must not run.
    """
    account = accepted_account()
    was_nobodys = folder.data.exists() and folder.data.lstat().st_uid == NOBODY
    return Account.NOBODY if account is Account.NAMESPACE and was_nobodys else account


def reachable(folder: Folder, binaries: Binaries, account: Account) -> Binaries:
    """Binaries the account can run: the given ones, or a copy of them in the folder."""
    if not allows(account, lambda: os.access(folder.directory, os.R_OK | os.X_OK)):
        raise EmbeddedError(
            f"Postgres cannot run as root, and uid {account.owner} cannot enter {folder.directory}:"
            " set HYBRID_RUNNER_DATA_DIR=/var/lib/hybrid-runner"
        )
    if allows(account, lambda: os.access(binaries.postgres, os.X_OK)):
        return binaries
    return binaries.copied_below(folder.directory)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
