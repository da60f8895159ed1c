"""Tests of what is stored by the hour."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.waiting import wait_until


@pytest.fixture
def within_an_hour() -> None:
    """No hour ends while the test goes on: partitions are of hours, and what is made for one and
    looked for in the next is not there.
    """
    wait_until(lambda: datetime.now(UTC), lambda now: (now.minute, now.second) < (59, 40))
