"""Every test that touches SQL gets a real Postgres and a database of its own, a copy of one that
was migrated once.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection, connect
from hybrid_runner.storage.migrations import migrate
from tests.support import faketime, pgbouncer, versions
from tests.support.server import Choice, Databases, Server, choose_server
from tools.roles import make_groups_of

pytest_plugins = [
    "tests.support.login_fixtures",
    "tests.support.monitor_fixtures",
    "tests.support.outside_fixtures",
    "tests.support.parallel",
    "tests.support.partition_fixtures",
]
CHOICE = pytest.StashKey[Choice]()
KEPT = ("HYBRID_RUNNER_TEST_", "HYBRID_RUNNER_POSTGRES_BIN")
"""Variables that say how to test; all others of ours would change what is tested."""


def pytest_configure(config: pytest.Config) -> None:
    """Forget the developer's own settings, and choose a server."""
    for name in list(os.environ):
        if name == "WORKER_ID" or (
            name.startswith(("OTEL_", "HYBRID_RUNNER_")) and not name.startswith(KEPT)
        ):
            del os.environ[name]
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a shell's job in the background: what we start would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _heed_sigterm()
    os.environ["HYBRID_RUNNER_HTTP_PORT"] = (
        "0"  # many workers at once; a test that asks for pages says where
    )
    config.stash[CHOICE] = choose_server()


def pytest_runtest_setup() -> None:
    """Each time, since an event loop with handlers of its own takes ours away."""
    _heed_sigterm()


def _heed_sigterm() -> None:
    """On SIGTERM, too, fixtures end what they started, and processes that run tests for this one
    end.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say where the tests run, and what cannot."""
    return [
        f"postgres: {config.stash[CHOICE].what}",
        f"postgres versions: {versions.summary()}",
        f"libfaketime: {faketime.find() or f'SKIPPED: {faketime.why_absent()}'}",
        f"pgbouncer: {pgbouncer.find() or f'SKIPPED: {pgbouncer.why_absent()}'}",
    ]


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """The Postgres under test."""
    server = pytestconfig.stash[CHOICE].start()
    asyncio.run(make_groups_of(server.dsn))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def databases(server: Server) -> Iterator[Databases]:
    """Makes databases in it."""
    with server.administrator() as connection:
        yield Databases(server, connection)


@pytest.fixture(scope="session")
def template(databases: Databases) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    name = databases.create()
    asyncio.run(_migrate(databases.server.dsn_of(name)))
    yield name
    databases.drop(name)


async def _migrate(dsn: str) -> None:
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()


@pytest.fixture
def dsn(databases: Databases, template: str) -> Iterator[str]:
    """A migrated database of this test's own."""
    with databases.fresh(template) as dsn:
        yield dsn


@pytest.fixture
def empty_dsn(databases: Databases) -> Iterator[str]:
    """A database of this test's own in which nothing was made yet."""
    with databases.fresh() as dsn:
        yield dsn


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Connection]:
    """A connection to this test's database."""
    connection = await connect(dsn)
    yield connection
    await connection.close()


@pytest.fixture(scope="session")
def unchanged_dsn(databases: Databases, template: str) -> Iterator[str]:
    """One migrated database for all tests that only read it."""
    with databases.fresh(template) as dsn:
        yield dsn


@pytest.fixture
async def unchanged(unchanged_dsn: str) -> AsyncIterator[Connection]:
    """A connection to it, on which nothing can be written."""
    connection = await connect(unchanged_dsn)
    await connection.execute("SET default_transaction_read_only = on")
    yield connection
    await connection.close()


@pytest.fixture
async def another(dsn: str) -> AsyncIterator[Callable[[], Awaitable[Connection]]]:
    """Opens more connections to this test's database."""
    async with AsyncExitStack() as stack:

        async def opened() -> Connection:
            connection = await connect(dsn)
            stack.push_async_callback(connection.close)
            return connection

        yield opened


@pytest.fixture(autouse=True)
def no_silent_errors(request: pytest.FixtureRequest) -> None:
    """What an event loop would only log fails the test."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("unhandled_loop_errors")


@pytest.fixture
async def unhandled_loop_errors() -> AsyncIterator[list[dict[str, Any]]]:
    """Errors that nobody awaited; a test that wants them clears the list."""
    errors: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    yield errors
    gc.collect(1)  # a task whose error nobody took says so when it is collected
    await asyncio.sleep(0)
    assert not errors, f"unhandled in the event loop: {errors}"
