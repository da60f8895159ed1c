"""A user process's share of the embedded Postgres."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import hybrid_runner
from hybrid_runner.embedded import locks
from hybrid_runner.embedded.binaries import psql_command
from hybrid_runner.embedded.folder import (
    PORT,
    STARTING,
    EmbeddedError,
    Folder,
    default_data_directory,
)
from hybrid_runner.embedded.probe import NAME, answers

READY, TAKEN = "ready", "taken"
"""What a keeper reports: it serves, or another keeper does. Any other report is an error
message.
"""
START_WITHIN = 60.0


@dataclass
class EmbeddedPostgres:
    """A running Postgres that lasts at least until `close`, or until this process ends."""

    directory: Path
    dsn: str
    psql: str
    """The line to type in a shell."""
    started: bool
    """Whether this call started the server."""
    _share: int | None = field(repr=False)
    """The users lock; written by `close` only."""

    def close(self) -> None:
        """Give up this share; the keeper stops the server after the last one."""
        share, self._share = self._share, None
        if share is not None:
            os.close(share)  # without unlocking: a forked child keeps its share

    def stop(self, within: float = 30.0) -> bool:
        """Give up this share, and wait until the server has ended: then its folder can be removed.
        Whether it has; somebody else who uses it keeps it running.
        """
        self.close()
        keeper = Folder(self.directory).lock("keeper")
        held = locks.hold(keeper, deadline=time.monotonic() + within)
        if held is not None:
            locks.release(held)
        return held is not None


def use_embedded(
    directory: Path | None = None, *, settings: Mapping[str, str] = {}
) -> EmbeddedPostgres:
    """The Postgres of this folder, started if need be, with `settings` if it is this call that
    starts it.
    """
    if sys.platform == "win32":
        raise EmbeddedError("the embedded Postgres does not run on Windows: set HYBRID_RUNNER_DSN")
    folder = Folder((directory or default_data_directory()).expanduser().resolve())
    folder.create()
    deadline = time.monotonic() + START_WITHIN
    try:
        start = _hold(folder, "start", deadline)
        try:
            share = _hold(folder, "users", deadline, shared=True)
            try:
                started, sockets = _serving(folder, settings, deadline)
            except BaseException:
                os.close(share)
                raise
        finally:
            locks.release(start)
    except OSError as error:
        raise EmbeddedError(
            f"cannot use {folder.directory}: {error}; set HYBRID_RUNNER_DATA_DIR or"
            " HYBRID_RUNNER_DSN"
        ) from error
    dsn = f"postgresql://{NAME}@/{NAME}?host={quote(str(sockets))}&port={PORT}"
    return EmbeddedPostgres(folder.directory, dsn, f'{psql_command()} "{dsn}"', started, share)


def _hold(folder: Folder, name: str, deadline: float, *, shared: bool = False) -> int:
    lock = locks.hold(folder.lock(name), deadline=deadline, shared=shared)
    if lock is None:
        doing = "stopping" if shared else "starting"
        raise folder.complaint(f"another process is still {doing} the server: try again")
    return lock


def _serving(folder: Folder, settings: Mapping[str, str], deadline: float) -> tuple[bool, Path]:
    """Whether we started a keeper, and the socket directory. Our share keeps it from stopping."""
    started = False
    while True:
        if not locks.is_held(folder.lock("keeper")):
            started = _start_keeper(folder, settings)
        sockets = folder.recorded_socket_directory()
        # The keeper second: an orphan of a killed keeper answers for a moment longer.
        if sockets and answers(sockets) and locks.is_held(folder.lock("keeper")):
            return started, sockets
        if time.monotonic() >= deadline:
            raise folder.complaint("Postgres did not become ready in time")
        time.sleep(locks.PAUSE)


def _start_keeper(folder: Folder, settings: Mapping[str, str]) -> bool:
    """Whether the keeper we started is the one that serves."""
    folder.bound_log()
    log = folder.open_log()
    try:
        os.write(log, f"{STARTING}\n".encode())
        options = [f"--setting={name}={value}" for name, value in settings.items()]
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "hybrid_runner.embedded.keeper",
                str(folder.directory),
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # -m looks there: a checkout needs no install.
            cwd=Path(hybrid_runner.__file__).parent.parent,
            start_new_session=True,  # Ctrl-C in this terminal is not for the keeper
        )
    finally:
        os.close(log)
    with process:
        try:
            report = process.communicate(timeout=START_WITHIN + 15)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            raise folder.complaint("the keeper of the embedded Postgres does not report") from None
    if report in (READY, TAKEN):
        return report == READY
    raise (
        EmbeddedError(report)
        if report
        else folder.complaint("the keeper of the embedded Postgres died")
    )
