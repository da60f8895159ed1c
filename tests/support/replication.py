"""Two Postgres servers on loopback, the second a standby of the first by streaming replication."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from hybrid_runner.embedded.binaries import Binaries, find_binaries
from tests.support.accounts import not_as_root
from tests.support.ports import free_port
from tests.support.server import ENOUGH, MEMORY
from tests.support.waiting import equals, wait_until

STANDBY = "standby"
_SETTINGS = {
    "fsync": "off",
    "max_connections": "100",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "100ms",
}


@dataclass
class Node:
    """One server, which can lose its power."""

    data: Path
    port: int
    binaries: Binaries
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def dsn(self) -> str:
        """This server alone."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable"

    def run(self, *command: str) -> None:
        """One of Postgres's programs, to its end."""
        name, *arguments = command
        program = str(self.binaries.directory / name)
        subprocess.run(not_as_root(program, *arguments), check=True, capture_output=True)

    def start(self, **settings: str) -> None:
        """Return once it answers."""
        wanted = (
            _SETTINGS
            | settings
            | {
                "port": str(self.port),
                "listen_addresses": "127.0.0.1",
                "unix_socket_directories": "",
            }
        )
        options = [part for name, value in wanted.items() for part in ("-c", f"{name}={value}")]
        with self.data.with_suffix(".log").open("ab") as log:
            command = not_as_root(self.binaries.postgres, "-D", str(self.data), *options)
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        while not self._answers():
            assert self.process.poll() is None, self.data.with_suffix(".log").read_text()
            time.sleep(0.02)

    def lose_power(self) -> None:
        """Every process of it ends at once."""
        assert self.process is not None
        postmaster = self.process.pid
        os.kill(postmaster, signal.SIGSTOP)  # so that it starts no other
        wait_until(lambda: _state(postmaster), equals("T"))
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        pids = [*map(int, children), postmaster]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        # Who starts it again finds its memory in use as long as one of them is there.
        wait_until(lambda: {_state(pid) for pid in pids} <= {None, "Z", "X"})

    def ask(self, query: str) -> object:
        """The first value."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            row = cursor.fetchone() if cursor.description else None
        return row and row[0]

    def promote(self) -> None:
        """Make it the primary."""
        assert self.ask("SELECT pg_promote(true, 30)")

    def stop(self) -> None:
        """If it runs."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.lose_power()

    def _answers(self) -> bool:
        try:
            return self.ask("SELECT true") is True
        except psycopg.OperationalError:
            return False


def _state(pid: int) -> str | None:
    """The letter of that process in /proc; None: it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


@dataclass(frozen=True)
class Pair:
    """The primary and its standby."""

    primary: Node
    standby: Node

    @property
    def dsn(self) -> str:
        """Whichever of them is the primary."""
        places = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{places}/postgres?sslmode=disable&target_session_attrs=read-write"

    def until_replayed(self) -> None:
        """Return once the standby has all that the primary has."""
        position = self.primary.ask("SELECT pg_current_wal_lsn()::text")
        wait_until(lambda: self.standby.ask(f"SELECT pg_last_wal_replay_lsn() >= '{position}'"))

    def cut(self) -> None:
        """Send the standby nothing more."""
        self.standby.ask("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.ask("SELECT pg_reload_conf()")
        wait_until(lambda: not self.standby.ask("SELECT count(*) FROM pg_stat_wal_receiver"))

    def rejoin(self) -> None:
        """The old primary comes back, as the standby of the new one."""
        old, new = self.primary, self.standby
        old.run("pg_rewind", "-D", str(old.data), "--source-server", new.dsn, "-R", "--no-sync")
        old.start()

    def fail_over(self) -> None:
        """The primary is gone, the standby takes over."""
        self.primary.lose_power()
        self.standby.promote()


@contextmanager
def pair(*, synchronous: bool) -> Iterator[Pair]:
    """Two servers that run."""
    place = (
        str(MEMORY)
        if MEMORY.is_dir() and os.statvfs(MEMORY).f_bavail * os.statvfs(MEMORY).f_frsize > ENOUGH
        else None
    )
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="hybrid-runner-pair-", dir=place)
            )
        )
        binaries = find_binaries()
        first, second = (Node(folder / name, free_port(), binaries) for name in ("first", "second"))
        first.run(
            "initdb",
            "-D",
            str(first.data),
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--no-locale",
            "--auth=trust",
            "--no-sync",
        )
        with (first.data / "postgresql.conf").open("a") as conf:
            conf.write(
                "wal_keep_size = 512MB\nwal_log_hints = on\n"
            )  # for pg_rewind, which starts the server without our options
        stack.callback(first.stop)
        first.start(synchronous_standby_names=STANDBY if synchronous else "")
        first.run(
            "pg_basebackup",
            "-D",
            str(second.data),
            "-d",
            f"{first.dsn}&application_name={STANDBY}",
            "-R",
            "--checkpoint=fast",
            "--no-sync",
        )
        stack.callback(second.stop)
        second.start()
        yield Pair(first, second)
