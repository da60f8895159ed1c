"""Programs that are not Python's: where they lie, what becomes of a test without them, and running
one for a while.

A test without its program is skipped, loudly; with HYBRID_RUNNER_TEST_REQUIRE=1, as in .ci/run, it
fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.waiting import PATIENCE

REQUIRE_VARIABLE = "HYBRID_RUNNER_TEST_REQUIRE"


def cache() -> Path:
    """Where tools/fetch keeps what it got."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hybrid-runner-ci"


def first_program(*candidates: str | Path | None) -> str | None:
    """The first of these paths that can be run."""
    return next((str(path) for path in candidates if path and os.access(path, os.X_OK)), None)


def missing(why: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be missing."""
    if os.environ.get(REQUIRE_VARIABLE):
        pytest.fail(f"{why} ({REQUIRE_VARIABLE} is set)", pytrace=False)
    pytest.skip(f"SKIPPED: {why}")


def line(found: str | None, why_absent: str) -> str:
    """What pytest's head says about it."""
    return found or f"SKIPPED: {why_absent}"


def answers(page: str) -> bool:
    """Whether there is such a page now."""
    try:
        with urllib.request.urlopen(page, timeout=5) as response:  # noqa: S310 - an address of ours
            return bool(response.status == 200)
    except OSError:
        return False


@contextmanager
def running(
    command: Sequence[str],
    ready: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
    ending: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """The program, from when it is ready; afterwards it gets the signal to end, and is killed if it
    does not.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(environment or {})},
        )
        try:
            _wait_until(ready, process, log.fileno())
            yield process
        finally:
            process.send_signal(ending)
            process.send_signal(signal.SIGCONT)  # a test may have stopped it
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: int) -> None:
    until = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            said = os.pread(log, 1 << 20, 0).decode(errors="replace")[-2000:]
            raise AssertionError(f"{process.args!r} is not ready: {said}")
        time.sleep(0.02)
