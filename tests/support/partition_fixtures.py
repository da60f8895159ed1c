"""Tests of what is stored by the hour."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import wait_until


@pytest.fixture
def within_an_hour() -> None:
    """No hour ends while the test goes on: partitions are of hours, and what is made for one and
    looked for in the next is not there.
    """
    wait_until(lambda: datetime.now(UTC), lambda now: (now.minute, now.second) < (59, 40))


@pytest.fixture
async def partitions_of_now(within_an_hour: None, database: Connection) -> None:
    """None is of an hour that is over: the template may have been made hours ago, and what it has
    of them would be pruned beside what a test has made.
    """
    over = "SELECT partition FROM hybrid_runner.archive_partitions WHERE upper <= now()"
    for row in await database.fetch(over):
        await database.execute(f"DROP TABLE hybrid_runner.{row[0]}")
