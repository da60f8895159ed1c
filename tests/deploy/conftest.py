"""What is built once for all tests of deploy/."""

from __future__ import annotations

import pytest

from tests.support.composition import build
from tests.support.engine import Engine


@pytest.fixture(scope="session")
def image(docker_engine: Engine) -> str:
    """The image that deploy/Dockerfile makes."""
    return build(docker_engine)
