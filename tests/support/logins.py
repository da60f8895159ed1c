"""Logins of the server under test, one for each right that an attacker may have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit, urlunsplit

from psycopg import Connection, sql

from tests.support.server import Server


class Login(Enum):
    """Who attacks."""

    NOBODY = "nobody"
    """No right but those that every login of the server has."""
    PRODUCER = "producer"
    OTHER_PRODUCER = "other_producer"
    """One that the first does not trust."""
    WORKER = "worker"
    READER = "reader"

    @property
    def role(self) -> str:
        return f"hybrid_runner_test_{os.getpid()}_{self.value}"

    @property
    def group(self) -> str | None:
        """Whose member it is."""
        if self is Login.NOBODY:
            return None
        name: str = self.value
        return "hybrid_runner_" + name.removeprefix("other_")


PASSWORD = "only-for-tests"


@dataclass(frozen=True)
class Logins:
    """Gives a database's DSN as one of the logins."""

    dsn: str

    def __call__(self, login: Login) -> str:
        url = urlsplit(self.dsn)
        return urlunsplit(
            url._replace(netloc=f"{login.role}:{PASSWORD}@{url.netloc.rpartition('@')[2]}")
        )


@contextmanager
def made(server: Server) -> Iterator[None]:
    """The logins, for as long as this lasts; the groups have to be there."""
    with server.administrator() as administrator:
        for login in Login:
            _make(administrator, login)
        yield
        for login in Login:
            administrator.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(login.role)))


def _make(administrator: Connection, login: Login) -> None:
    role = sql.Identifier(login.role)
    administrator.execute(
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(PASSWORD))
    )
    if login.group:
        administrator.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(login.group), role))
