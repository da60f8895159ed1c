"""Names of queues and kinds as arguments."""

from __future__ import annotations

from hybrid_runner.cli.parsing import checked
from hybrid_runner.handlers.kind import NAME, check_queue


@checked
def queue_name(text: str) -> str:
    """The name of a queue."""
    check_queue(text)
    return text


@checked
def kind_name(text: str) -> str:
    """The name of a kind."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not a kind: use 1 to 128 letters, digits and . _ : / -")
    return text
