"""Opens a connection to Postgres, direct or by way of a pooler."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from hybrid_runner import secrets
from hybrid_runner.errors import ConfigurationError, DatabaseUnavailable
from hybrid_runner.storage.connections import hosts, pooler
from hybrid_runner.storage.connections.session_settings import FOR_ALL
from hybrid_runner.storage.connections.types_known import TypesKnown
from hybrid_runner.storage.failures import translate

if TYPE_CHECKING:  # generic in the stubs alone
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

CONNECT_TIMEOUT = 10.0
STATEMENT_TIMEOUT = 60.0


async def connect(dsn: str, settings: Mapping[str, str] = MappingProxyType({})) -> Connection:
    """One new connection, direct or by way of a pooler; errors are RunnerErrors."""
    check_dsn(dsn)
    secrets.learn_dsn(dsn)
    wanted = FOR_ALL | dict(settings)
    try:
        if not pooler.is_known(dsn):
            with pooler.noting_refusal(dsn):
                connection = await _open(
                    dsn,
                    connection_class=TypesKnown,
                    server_settings=wanted,
                    max_cached_statement_lifetime=0,
                )
                try:
                    if await pooler.keeps_settings(dsn, connection):
                        return connection
                except BaseException:  # cancelled: nobody else would close it
                    connection.terminate()
                    raise
                connection.terminate()
        return pooler.prepared(await _open(dsn, **pooler.OPTIONS), wanted)
    # A port beyond 65535, or a password with a slash that nobody encoded.
    except (ValueError, OverflowError):  # which quote a piece of the DSN
        raise ConfigurationError(
            "the DSN cannot be used: look at its host and port, and percent-encode its password"
        ) from None
    except Exception as error:
        failure = translate(error)
        said = secrets.hide(str(failure))  # the driver may quote what it could not read
        if isinstance(failure, DatabaseUnavailable):
            raise type(failure)(f"{said} (at {_place(dsn)}: does it run there?)") from error
        raise type(failure)(said) from error


async def _open(dsn: str, **options: Any) -> Connection:
    connection = await hosts.first(
        dsn, CONNECT_TIMEOUT, command_timeout=STATEMENT_TIMEOUT, **options
    )
    # The driver alone knows the password if PGPASSWORD or a passfile has it.
    if (login := getattr(connection, "_params", None)) is not None:
        secrets.learn_password(login.password, login.user, login.database)
    return connection


def _place(dsn: str) -> str:
    """Where a DSN points to, without its password."""
    url = urlsplit(dsn)
    named = parse_qs(url.query)
    # Its password has a character that should have been percent-encoded.
    if "@" in url.path + url.fragment:
        return "a place that cannot be read: percent-encode the password"
    host = named["host"][0] if "host" in named else url.netloc.rpartition("@")[2]
    return host or "the default socket"


def check_dsn(dsn: str) -> None:
    """ConfigurationError unless it looks like a DSN."""
    if not dsn.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "the DSN cannot be used: it must look like postgresql://user:password@host:5432/database"
        )
