"""Databases as other logins see them: `login`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import logins
from tests.support.logins import Logins
from tests.support.server import Server


@pytest.fixture(scope="session")
def _logins(server: Server) -> Iterator[None]:
    with logins.made(server):
        yield


@pytest.fixture
def login(dsn: str, _logins: None) -> Logins:
    """The DSN of this test's database as another login: `login(Login.PRODUCER)`."""
    return Logins(dsn)
