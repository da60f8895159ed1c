"""Which functions and grants a database has, recorded with its schema: where they are those of this
release, `migrate` has nothing to do, and needs no right to do it.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from hashlib import sha256

import asyncpg

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.storage.queries import functions, query, script
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.storage")

_SCRIPTS = ("partitions", "grants")
_NOT_GRANTED = "01007"


@dataclass(frozen=True)
class Installed:
    """What a database has. Empty where nothing was recorded, or somebody wrote something else."""

    release: str
    digest: str
    granted: tuple[str, ...]
    """The roles that were there when rights were granted."""
    roles: tuple[str, ...]
    """The roles that are there now."""
    wanted: str
    """The digest of this release."""

    @property
    def is_of_newer_release(self) -> bool:
        """Functions of a newer release do for this one as well, and are not replaced by it."""
        return _numbers(self.release) > _numbers(_version())

    @property
    def is_current(self) -> bool:
        """Whether its functions and grants need not be made."""
        if self.is_of_newer_release:
            return True
        return self.digest == self.wanted and self.granted == self.roles


async def read_installed(on: Fetches, part: str = "") -> Installed:
    """What this database has."""
    asked = query("monitors_installed") if part else query("installed")
    [(recorded, roles)] = await on.fetch(asked)
    try:
        found = json.loads(recorded or "{}")
        said = str(found["release"]), str(found["digest"]), tuple(map(str, found["roles"]))
    except (ValueError, LookupError, TypeError):
        said = "", "", ()
    return Installed(*said, tuple(roles), digest(part))


def digest(part: str = "") -> str:
    """Of the SQL of all functions, partitions and grants of this release."""
    texts = [sql for _, sql in functions(part)] + [script(name, part) for name in _SCRIPTS]
    return sha256("\0".join(texts).encode()).hexdigest()[:16]


def record(part: str = "") -> str:
    """The statement that records those of this release."""
    words = {"{release}": _version(), "{digest}": digest(part)}
    text = script("installed", part)
    for place, word in words.items():
        text = text.replace(place, word)
    return text


async def needs_functions(on: Fetches) -> bool:
    """Whether `migrate` has to make functions and grants although no migration is missing."""
    installed = await read_installed(on)
    if installed.is_of_newer_release:
        log.warning(
            "the database's functions are those of hybrid-runner %s: they stay, this is %s",
            installed.release,
            _version(),
            extra=log_event("schema.functions_newer"),
        )
    return not installed.is_current


async def warn_of_older_functions(on: Fetches) -> None:
    """Say that `migrate` of this release has not run. Newer functions are as good."""
    installed = await read_installed(on)
    if installed.digest != digest() and not installed.is_of_newer_release:
        log.warning(
            "the database's functions are not those of this hybrid-runner (%s, they are of %s): run"
            " `hybrid-runner migrate` with the same DSN",
            _version(),
            installed.release or "an earlier one",
            extra=log_event("schema.functions_older"),
        )


def _warn_of_missing_role(_: object, message: asyncpg.PostgresLogMessage) -> None:
    if message.sqlstate == _NOT_GRANTED:
        log.warning("%s", message.message, extra=log_event("schema.role_missing"))


def warn_of_missing_roles(connection: Connection) -> None:
    """Log each role that is not there to be granted rights, as the script of grants says it."""
    connection.add_log_listener(_warn_of_missing_role)


def _version() -> str:
    from hybrid_runner.version import VERSION  # noqa: PLC0415  # it takes 20 ms to know

    return VERSION


def _numbers(release: str) -> tuple[int, ...]:
    """Comparable; what comes behind the first letter or plus does not count."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", release)[0])))
