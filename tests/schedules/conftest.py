"""Schedules by a clock that tests set."""

from __future__ import annotations

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.tick_clock import Schedules


@pytest.fixture
async def schedules(database: Connection) -> Schedules:
    """Of this test's database, at noon."""
    return await Schedules(database).begin()
