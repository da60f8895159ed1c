"""docs/waiting.md: its Python is one module, its SQL runs."""

from __future__ import annotations

import sys

from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import blocks
from tests.docs.test_pages import load


def test_the_waiting_page_is_a_module() -> None:
    module = load(
        "waiting_page", "".join(block.text for block in blocks("docs/waiting.md", "python"))
    )
    del sys.modules["waiting_page"]
    kinds = {kind.name: kind.on_end for kind in module.app.registry}
    assert kinds == {
        "start-query": "clean-up-query",
        "poll-query": "clean-up-query",
        "clean-up-query": None,
        "watch": None,
        "watch-orders": None,
        "order": None,
        "parcel": None,
    }


async def test_what_the_waiting_page_says_in_sql_runs(database: Connection) -> None:
    for block in blocks("docs/waiting.md", "sql"):
        await database.execute(block.text)
