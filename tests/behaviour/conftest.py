"""What tests of outages share."""

from __future__ import annotations

import pytest

from tests.support import inside


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries, for workers in this process."""
    inside.make_outages_short(monkeypatch, 0.02, 0.2, 2)
