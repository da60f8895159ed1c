"""The process that keeps one folder's Postgres for as long as anybody uses it.

starting --ready--> keeping --nobody left--> stopping
    |                 |  ^
  failed         died |  | started again, later each time; after too many quick deaths: given up
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from hybrid_runner.embedded import locks
from hybrid_runner.embedded.account import die_with_parent
from hybrid_runner.embedded.binaries import find_binaries
from hybrid_runner.embedded.cluster import Cluster
from hybrid_runner.embedded.folder import EmbeddedError, Folder
from hybrid_runner.embedded.server import Server
from hybrid_runner.embedded.share import READY, START_WITHIN, TAKEN

_QUICK_DEATH = 10.0
_QUICK_DEATHS = 5


def main() -> None:
    """Detach, start Postgres, report to the process that waits for it, and keep it running."""
    arguments = _parser().parse_args()
    if os.fork():  # the user's process gets rid of its child at once; init inherits us
        os._exit(0)
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = Folder(arguments.directory)
    lock = locks.hold(folder.lock("keeper"), deadline=time.monotonic() + 1)
    if lock is None:
        _report(TAKEN)
        return
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())  # for people who look; nothing reads it
    try:
        server = _start(folder, dict(arguments.setting))
    except (EmbeddedError, OSError) as error:
        _report(str(error))
        return
    try:
        _report(READY)
        _keep(server, lock)
    except EmbeddedError as error:
        _say(str(error))
    finally:
        server.stop()
        _say("stopped")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Keeps one embedded Postgres; started by use_embedded."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--setting", action="append", default=[], type=lambda text: text.split("=", 1)
    )
    return parser


def _start(folder: Folder, settings: dict[str, str]) -> Server:
    deadline = time.monotonic() + START_WITHIN
    binaries = find_binaries()
    Cluster(folder, binaries).prepare()
    server = Server(folder, binaries, folder.make_socket_directory(), settings)
    try:
        server.start()
        server.wait_until_ready(deadline)
    except BaseException:
        server.stop()
        raise
    return server


def _keep(server: Server, lock: int) -> None:
    """Return when nobody uses the server any more; start it again when it dies before that."""
    users = locks.open_lock(server.folder.lock("users"))
    waiter = _fork_waiter(users, lock)
    born, quick_deaths = time.monotonic(), 0
    while True:
        ended, status = os.wait()
        if ended == waiter and status == 0:
            return
        if ended == waiter:
            waiter = _fork_waiter(users, lock)
        elif ended == server.pid:
            server.forget()
            quick_deaths = quick_deaths + 1 if time.monotonic() - born < _QUICK_DEATH else 1
            _say(
                f"Postgres ended by itself (status {status}), {quick_deaths} quick deaths in a row"
            )
            if quick_deaths >= _QUICK_DEATHS:
                raise EmbeddedError("given up; the next user of this folder starts Postgres again")
            time.sleep(0.1 * (2**quick_deaths - 2))  # the first time at once
            server.start()
            born = time.monotonic()


def _fork_waiter(users: int, lock: int) -> int:
    """A child that ends with status 0 when nobody holds `users`; the lock is then ours, as we share
    it.
    """
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.close(lock)  # held by the keeper alone: it says that the keeper lives
        die_with_parent(parent, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        locks.wait_until_unshared(users)
        os._exit(0)
    finally:
        os._exit(1)


def _report(outcome: str) -> None:
    """Write the outcome to stdout, which the process that started the keeper reads to its end;
    failures go to the log as well.
    """
    if outcome not in (READY, TAKEN):
        _say(outcome)
    with suppress(BrokenPipeError):
        os.write(1, outcome.encode())
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.close(nothing)


def _say(text: str) -> None:
    os.write(sys.stderr.fileno(), f"keeper: {text}\n".encode())


if __name__ == "__main__":
    main()
