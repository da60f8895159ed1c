"""A progress bar for one job, while somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from hybrid_runner.cli.status_line import StatusLine
from hybrid_runner.display import one_line, progress_bar
from hybrid_runner.model.jobs import JobStatus


@contextmanager
def waiting(stream: TextIO, seen: list[JobStatus]) -> Iterator[Callable[[JobStatus], None]]:
    """Keep the latest status in `seen`; on a terminal show it on a line that is gone at the end."""
    line = StatusLine(stream)

    def show(status: JobStatus) -> None:
        seen[:] = [status]
        if not status.state.final:
            line.show(describe(status))

    try:
        yield show
    finally:
        line.clear()


def describe(status: JobStatus) -> str:
    """A bar, the share that is done, and what the handler said last."""
    progress = status.progress if isinstance(status.progress, dict) else {}
    fraction, message = progress.get("fraction"), one_line(str(progress.get("message") or ""))
    if not isinstance(fraction, (int, float)):
        return f"job {status.id} is {status.state.value} {message}".rstrip()
    return f"job {status.id} {progress_bar(fraction)} {fraction:4.0%} {message}".rstrip()
