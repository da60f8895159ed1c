"""A reconciler: a query of the application's that finds work without a live job."""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import NAME, JobKind

SHORTEST = timedelta(seconds=10)
"""Duties are given out by heartbeats."""
LONGEST = timedelta(days=1)
MOST = 10_000
"""Jobs that one round may restore."""
_COLUMN = re.compile(r"[^\W\d]\w{0,62}")


@dataclass(frozen=True)
class Reconciler:
    """Once in a while one worker of the fleet runs the query and stores a job for each row whose
    key no live job has. Calling it gives the query.
    """

    name: str
    kind: JobKind[Any, Any]
    every: timedelta
    key_parts: tuple[str, ...]
    """Texts and names of columns in turns, a text first."""
    query: str
    most: int

    @property
    def duty(self) -> str:
        """The name of its row in `hybrid_runner.duties`."""
        return f"reconcile:{self.kind.name}:{self.name}"

    def __call__(self) -> str:
        return self.query


def make_reconciler(
    function: Callable[[], str],
    *,
    every: timedelta,
    kind: object,
    key: object,
    most: object,
) -> Reconciler:
    """Make one of a function that returns its query, and check what can be checked without a
    database.
    """
    name = getattr(function, "__name__", "")
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            "@app.reconcile(…) stands above a function that returns a query: give it a name"
        )
    if not isinstance(kind, JobKind):
        raise ConfigurationError(
            f"reconciler {name!r}: kind must be a handler of @app.job(…), not {kind!r}"
        )
    if not SHORTEST <= every <= LONGEST:
        raise ConfigurationError(f"reconciler {name!r}: every must be 10 s to 1 day, not {every}")
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST:
        raise ConfigurationError(f"reconciler {name!r}: most must be 1 to {MOST:,}, not {most!r}")
    return Reconciler(name, kind, every, _key_parts(name, key), _query(name, function), most)


def _query(name: str, function: Callable[[], str]) -> str:
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(
            f"reconciler {name!r}: write it as a plain def that returns the query"
        )
    try:
        query: object = function()
    except TypeError as error:
        raise ConfigurationError(
            f"reconciler {name!r}: it is called without arguments: {error}"
        ) from None
    text = query.strip().rstrip(";").rstrip() if isinstance(query, str) else ""
    if not text:
        raise ConfigurationError(f"reconciler {name!r}: it must return the text of a query")
    return text


def _key_parts(name: str, key: object) -> tuple[str, ...]:
    wrong = (
        f"reconciler {name!r}: key must name a column of the query in braces, such as"
        f' "poll-{{run}}", not {key!r}'
    )
    if not isinstance(key, str) or "\x00" in key:
        raise ConfigurationError(wrong)
    parts, before = list[str](), ""
    try:
        for text, column, form, conversion in string.Formatter().parse(key):
            before += text
            if column is None:
                continue
            if not _COLUMN.fullmatch(column) or form or conversion:
                raise ConfigurationError(wrong)
            parts += (before, column)
            before = ""
    except ValueError:  # a single brace
        raise ConfigurationError(wrong) from None
    if not parts:
        raise ConfigurationError(wrong)
    return (*parts, before)
