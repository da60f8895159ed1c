"""What tests of several files here have."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.two_owners import TwoOwners, two_owners


@pytest.fixture
async def owners(dsn: str) -> AsyncIterator[TwoOwners]:
    """Whose table was not attached yet."""
    async with two_owners(dsn) as owners:
        yield owners
