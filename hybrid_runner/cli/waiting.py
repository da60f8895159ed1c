"""A progress bar for one job, while somebody waits for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from hybrid_runner.cli.output import clip, one_line
from hybrid_runner.display import progress_bar
from hybrid_runner.model.jobs import JobStatus


@contextmanager
def waiting(stream: TextIO, seen: list[JobStatus]) -> Iterator[Callable[[JobStatus], None]]:
    """Keep each status; show it on a terminal, on one line that is gone afterwards."""
    on_terminal = stream.isatty()

    def show(status: JobStatus) -> None:
        seen[:] = [status]
        if on_terminal and not status.state.final:
            stream.write(
                "\r" + clip(describe(status), shutil.get_terminal_size().columns - 1) + "\x1b[K"
            )
            stream.flush()

    try:
        yield show
    finally:
        if on_terminal:
            stream.write("\r\x1b[K")
            stream.flush()


def describe(status: JobStatus) -> str:
    """The bar, the share that is done, and what the handler said last."""
    said = status.progress if isinstance(status.progress, dict) else {}
    fraction, message = said.get("fraction"), one_line(str(said.get("message") or ""))
    if not isinstance(fraction, (int, float)):
        return f"job {status.id} is {status.state.value} {message}".rstrip()
    return f"job {status.id} {progress_bar(fraction)} {fraction:4.0%} {message}".rstrip()
