"""Where the pages about jobs get their jobs; made before the worker knows its database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybrid_runner.settings import Settings


@dataclass(frozen=True, slots=True)
class PageDatabase:
    """A database, and the settings of its pages."""

    settings: Settings
    dsn: Callable[[], str | None]
    """None while an embedded Postgres is being started."""
