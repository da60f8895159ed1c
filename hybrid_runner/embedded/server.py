"""The postgres process: start it, know when it answers, stop it. For a process without threads."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hybrid_runner.embedded import locks
from hybrid_runner.embedded.account import die_with_parent, leave_root
from hybrid_runner.embedded.binaries import Binaries
from hybrid_runner.embedded.folder import PORT, SOCKET_NAME, EmbeddedError, Folder
from hybrid_runner.embedded.probe import answers

_DEFAULTS = {"shared_buffers": "128MB", "log_checkpoints": "off", "cluster_name": "hybrid_runner"}
_DYING_WITHIN = 1.0
_LEAVE_WITHIN = 30.0
_STOPS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
"""Postgres's fast and immediate shutdown, then a kill, and the seconds to wait after each."""


@dataclass
class Server:
    """One Postgres on one folder; `pid` is written by `start` and `forget`."""

    folder: Folder
    binaries: Binaries
    sockets: Path
    settings: Mapping[str, str]
    pid: int | None = field(default=None, init=False)
    """None before the start and after the end, so that no other process with this number is
    signalled.
    """

    def start(self) -> None:
        """Start Postgres once everything of an earlier one is gone."""
        lock = wait_for_earlier_server(self.folder)
        self._remove_stale_pid_files()
        self.pid = spawn(self._command(), log=self.folder, lock=lock, at_our_death=signal.SIGINT)
        os.close(lock)

    def wait_until_ready(self, deadline: float) -> None:
        """Return when a session works; raise when Postgres ends, or the deadline passes, before
        that.
        """
        while not answers(self.sockets):
            if self._has_ended():
                raise self.folder.complaint("Postgres did not start")
            if time.monotonic() >= deadline:
                self.stop()
                raise self.folder.complaint("Postgres did not become ready in time")
            time.sleep(locks.PAUSE)

    def stop(self) -> None:
        """Stop Postgres, by ever harsher signals, and wait for its end."""
        for number, patience in _STOPS:
            if self.pid is None:
                return
            os.kill(self.pid, number)
            deadline = time.monotonic() + patience
            while not self._has_ended() and time.monotonic() < deadline:
                time.sleep(locks.PAUSE)

    def forget(self) -> None:
        """Note that the process ended and was waited for."""
        self.pid = None

    def _has_ended(self) -> bool:
        if self.pid is not None and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.forget()
        return self.pid is None

    def _command(self) -> list[str]:
        ours = {  # last, because they keep strangers out
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
        }
        options = [
            f"{name}={value}" for name, value in {**_DEFAULTS, **self.settings, **ours}.items()
        ]
        return [
            self.binaries.postgres,
            "-D",
            str(self.folder.data),
            *(part for o in options for part in ("-c", o)),
        ]

    def _remove_stale_pid_files(self) -> None:
        # The pid in them may be that of any process by now (in a restarted container it always is),
        # and then Postgres would not start. server.lock says that no server of this folder is
        # left, but somebody may have started one by hand.
        if _recorded_postmaster(self.folder) is None:
            (self.folder.data / "postmaster.pid").unlink(missing_ok=True)
            (self.sockets / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)


def wait_for_earlier_server(folder: Folder) -> int:
    """The server lock, once no process of an earlier Postgres (or initdb) is left."""
    path = folder.lock("server")
    lock = locks.hold(path, deadline=time.monotonic() + _DYING_WITHIN)
    if lock is None and (pid := _recorded_postmaster(folder)):
        with suppress(ProcessLookupError):
            # It outlived its keeper: there is no PDEATHSIG outside Linux.
            os.kill(pid, signal.SIGINT)
    if lock is None:
        lock = locks.hold(path, deadline=time.monotonic() + _LEAVE_WITHIN)
    if lock is None:
        raise EmbeddedError(
            f"processes of an earlier Postgres do not end: look with `fuser {path}`, and end them"
        )
    return lock


def spawn(
    command: list[str],
    *,
    log: Folder,
    lock: int,
    at_our_death: signal.Signals,
    text: str = "",
) -> int:
    """Start a program, not as root, that logs to the folder's log and holds the server lock; its
    pid.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    # On macOS another locale makes Postgres multithreaded, and it refuses to start.
    environment["LC_ALL"] = "C"
    parent = os.getpid()
    reader, writer = os.pipe()
    os.write(writer, text.encode())  # a few lines; a pipe holds 64 KiB
    os.close(writer)
    output = log.open_log()
    child = os.fork()
    if child == 0:
        try:
            leave_root()
            die_with_parent(parent, at_our_death)
            os.dup2(reader, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.set_inheritable(lock, True)
            os.umask(0o077)
            # A background job inherits an ignored SIGINT.
            for number in (signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execve(command[0], command, environment)  # noqa: S606 - a shell is not wanted
        except BaseException as error:
            os.write(output, f"keeper: cannot run {command[0]}: {error}\n".encode())
        finally:
            os._exit(127)
    os.close(reader)
    os.close(output)
    return child


def _recorded_postmaster(folder: Folder) -> int | None:
    """The pid in postmaster.pid, when that process is (as far as can be told) a server on this data
    directory.
    """
    try:
        pid = int((folder.data / "postmaster.pid").read_text().split("\n", 1)[0])
        if Path("/proc/self/cwd").exists():
            return pid if Path(f"/proc/{pid}/cwd").samefile(folder.data) else None
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid
