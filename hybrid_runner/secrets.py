"""The passwords and tokens that this process knows, which no error, log line or span shows.

Only the known values are replaced, as they are and as they stand in a DSN; one of letters alone not
within a longer word. A short one, or one that is also the name of the user or of the database,
would be found by chance in other texts and stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus, urlsplit

HIDDEN = "***"
SHORTEST = 6
"""Characters of the shortest secret that is replaced."""
_HEADERS = (
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
)

_known: frozenset[str] = frozenset()
_pattern: re.Pattern[str] | None = None


def learn(*secrets: str | None) -> None:
    """Replace these values from now on."""
    global _known, _pattern  # noqa: PLW0603  # of the process, as its environment is
    found = {secret for secret in secrets if secret is not None and len(secret) >= SHORTEST}
    if not found <= _known:
        _known |= found
        longest_first = sorted(_known, key=len, reverse=True)
        _pattern = re.compile("|".join(map(_expression, longest_first)))


def learn_password(password: str | None, *names: str) -> None:
    """Replace the password of a session from now on, unless it is one of the public names."""
    learn(password if password not in (*names, "postgres") else None)


def learn_dsn(*dsns: str | None) -> None:
    """Replace the passwords of these DSNs from now on, encoded and decoded."""
    for dsn in dsns:
        for password, names in _passwords(dsn or ""):
            for form in (password, unquote(password), unquote_plus(password)):
                learn_password(form, *names)


def learn_environment() -> None:
    """Replace the secrets of the environment from now on. A header that the SDK of OpenTelemetry
    cannot read is quoted by it.
    """
    learn_dsn(*map(os.environ.get, ("HYBRID_RUNNER_DSN", "HYBRID_RUNNER_LISTEN_DSN")))
    learn(*map(os.environ.get, ("HYBRID_RUNNER_HTTP_TOKEN", "PGPASSWORD")))
    for headers in map(os.environ.get, _HEADERS):
        learn(*(header.strip() for header in (headers or "").split(",")))


def known() -> tuple[str, ...]:
    """Return the secrets, for a child process to learn."""
    return tuple(_known)


def hide(text: str) -> str:
    """Return the text without the known secrets."""
    return text if _pattern is None else _pattern.sub(HIDDEN, text)


def _expression(secret: str) -> str:
    return rf"\b{secret}\b" if secret.isalpha() else re.escape(secret)


def _passwords(dsn: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield passwords as they stand in the DSN, each with its user and database."""
    try:
        url = urlsplit(dsn)
    except ValueError:  # no connection is made with it
        return
    user, _, password = url.netloc.rpartition("@")[0].partition(":")
    names = (unquote(user), url.path.removeprefix("/"))
    yield password, names
    pairs = (pair.partition("=") for pair in url.query.split("&"))
    yield from ((value, names) for name, _, value in pairs if name == "password")
