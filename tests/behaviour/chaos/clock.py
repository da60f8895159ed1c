"""The clock of the server under test, and of it alone: its processes run with libfaketime, which
reads from a file how far from the true time they are.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybrid_runner.embedded.binaries import Binaries
from tests.support import faketime


class ServerClock:
    """Tells the true time until it is set; what sets it at the same time adds up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "clock"
        self._ahead: list[float] = []

    def wrap(self, binaries: Binaries) -> Path:
        """A folder of binaries that run by this clock, with nothing else that they start."""
        library = faketime.find()
        assert library is not None
        self._folder.mkdir()
        self._write()
        variables = {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": self._file,
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # nobody sets a monotonic clock
            "FAKETIME_DISABLE_SHM": "1",  # it would outlive a server that is killed
        }
        environment = [f"{name}={shlex.quote(str(value))}" for name, value in variables.items()]
        _write_script(self._folder / "postgres", [*environment, f"exec {binaries.postgres}"])
        _write_script(self._folder / "initdb", [f"exec {binaries.initdb}"])
        return self._folder

    @contextmanager
    def ahead(self, seconds: float) -> Iterator[None]:
        """Meanwhile it tells a time that is so much later, or earlier if that is below zero."""
        self._ahead.append(seconds)
        self._write()
        try:
            yield
        finally:
            self._ahead.remove(seconds)
            self._write()

    def _write(self) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{sum(self._ahead):+.3f}s\n")
        new.replace(self._file)  # never half of it


def _write_script(path: Path, words: list[str]) -> None:
    path.write_text(f'#!/bin/sh\n{" ".join(words)} "$@"\n')
    path.chmod(0o755)
