"""What tests of outages share."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hybrid_runner.policy.pace import Pace
from hybrid_runner.worker import loops


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries, for workers in this process."""
    monkeypatch.setattr(loops, "OUTAGE", Pace(timedelta(milliseconds=20), timedelta(milliseconds=200), 2))
