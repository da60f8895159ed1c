"""Spans that the test's own provider received."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.drawn import Drawn, drawing


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drawn]:
    with drawing(monkeypatch) as drawn:
        yield drawn
