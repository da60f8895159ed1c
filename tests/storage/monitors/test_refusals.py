from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.monitors.refusals import REFUSALS

ADD = (
    "INSERT INTO hybrid_monitors.services (name, url, mapping, expect, headers) VALUES ('a', $1,"
    " $2, $3, $4)"
)


@pytest.mark.parametrize(("column", "stored", "line"), REFUSALS)
async def test_a_wrong_definition_is_refused_at_the_insert_in_the_line_that_python_says(
    monitored: Connection, column: str, stored: Any, line: str
) -> None:
    columns: dict[str, Any] = {"url": "http://a"}
    columns[column] = stored if column == "url" else json.dumps(stored)
    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await monitored.execute(
            ADD, *(columns.get(name) for name in ("url", "mapping", "expect", "headers"))
        )
    assert str(raised.value) == f"services.{line}"
