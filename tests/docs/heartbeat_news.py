"""The table of heartbeat news in docs/sql.md, written from the types: `python -m
tests.docs.heartbeat_news`.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, get_args

from hybrid_runner.model.news import HeartbeatNews
from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "sql.md"
TABLE = re.compile(r"\| `what` \| `queue`, `value` \|.*?\n(?!\|)", re.DOTALL)
TYPES: tuple[type[Any], ...] = get_args(HeartbeatNews)


def word(news: type[Any]) -> str:
    """Its `what`: QueueMember is queue_member."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", news.__name__).lower()


def table() -> str:
    """The table as it should be."""
    rows = ["| `what` | `queue`, `value` | what it says |", "|---|---|---|"]
    for news in TYPES:
        columns = ", ".join(f"`{field.name}`" for field in fields(news))
        rows.append(f"| `{word(news)}` | {columns} | {' '.join((news.__doc__ or '').split())} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(
        TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
