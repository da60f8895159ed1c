from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from hybrid_runner import RetryPolicy
from tests.examples.supabase import Supabase, supabase_database, supabase_server
from tests.support.server import Databases


@pytest.fixture(scope="module")
def supabase_of_module() -> Iterator[tuple[Databases, str]]:
    """A server for the tests of one module."""
    with supabase_server() as server:
        yield server


@pytest.fixture
def supabase(supabase_of_module: tuple[Databases, str]) -> Iterator[Supabase]:
    """A database for one test."""
    with supabase_database(supabase_of_module) as database:
        yield database


@pytest.fixture
def fresh_dsn(supabase_of_module: tuple[Databases, str]) -> Iterator[str]:
    """A database of a superuser's in which nothing was made yet."""
    databases, _ = supabase_of_module
    with databases.fresh() as dsn:
        yield dsn


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt follows at once."""
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: timedelta(0))
