"""The command configures the logging of its process, which here is that of all tests: it is put
back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    root, product = logging.getLogger(), logging.getLogger("hybrid_runner")
    before = root.level, product.level, root.handlers[:], product.handlers[:], product.propagate
    yield
    root.level, product.level, root.handlers[:], product.handlers[:], product.propagate = before
    logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]  # levels were put back behind its back
