"""The tables of messages in docs/sql.md, written from the types: `python -m
tests.docs.notify_messages`.
"""

from __future__ import annotations

import re
from typing import Any, get_args

from hybrid_runner.model.messages import (
    READERS,
    SOURCES,
    TICKS,
    JobsChanged,
    JobsRead,
    Proof,
    QueueMessage,
    SchedulesChanged,
    SignalSent,
    SourcesMessage,
    changes_channel,
    channel_of,
    proof_channel,
    signals_channel,
)
from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "sql.md"
TABLE = re.compile(r"\| channel \| message \|.*?\n(?!\|)", re.DOTALL)
MESSAGES: tuple[tuple[str, tuple[type[Any], ...]], ...] = (
    (channel_of("QUEUE").name, get_args(QueueMessage)),
    (READERS.name, (JobsRead,)),
    (changes_channel("hybrid_runner.~changes~…").name, (JobsChanged,)),
    (signals_channel("hybrid_runner.~signals~…").name, (SignalSent,)),
    (SOURCES.name, get_args(SourcesMessage)),
    (TICKS.name, (SchedulesChanged,)),
    (proof_channel("…").name, (Proof,)),
)


def table() -> str:
    """The table as it should be."""
    rows = [
        "| channel | message | what it says | what a forged one can do at worst |",
        "|---|---|---|---|",
    ]
    for channel, messages in MESSAGES:
        for message in messages:
            form = f"`{message.FORM}`" if message.FORM else "(empty)"
            says = " ".join((message.__doc__ or "").split())
            rows.append(f"| `{channel}` | {form} | {says} | {message.FORGED} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(
        TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
