"""Headers of a request: as they are stored, and with secrets filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from yarl import URL

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.definitions import check_size
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.secrets import Secret

MOST: Final = 64
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_LONGEST: Final = 2000
_UNFIT: Final = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
_OURS: Final = frozenset(
    (
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
    )
)
_SECRET: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]{0,99})\}")


def check_headers(stored: Any) -> None:
    """ConfigurationError in one line when they are not as they must be."""
    if not isinstance(stored, dict):
        raise ConfigurationError("headers must be an object")
    check_size(stored, "headers")
    if len(stored) > MOST:
        raise ConfigurationError(f"headers has more than {MOST} entries")
    seen: set[str] = set()
    for name in sorted(stored):
        where = f"headers.{name[:100]}"
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"{where} is no name of a header: use letters, digits and -")
        if name.lower() in _OURS:
            raise ConfigurationError(f"{where} is set by the poller: leave it out")
        if name.lower() in seen:
            raise ConfigurationError(f"{where} is given twice")
        seen.add(name.lower())
        value = stored[name]
        if not isinstance(value, str) or len(value) > _LONGEST:
            raise ConfigurationError(f"{where} must be a text of up to {_LONGEST} characters")
        if _UNFIT.search(value):
            raise ConfigurationError(
                f"{where} has a character that no header can hold: use printable ASCII"
            )


@dataclass(frozen=True, slots=True, repr=False)
class Filled:
    """Headers with secrets in them, for the origin of one address."""

    url: URL
    values: dict[str, str]
    revealed: tuple[str, ...]
    """The secrets that are in them."""

    def toward(self, url: URL) -> dict[str, str]:
        """What is sent there: elsewhere than at their own origin, nothing that may be secret."""
        if url is self.url or url.origin() == self.url.origin():
            return self.values
        return {
            name: value
            for name, value in self.values.items()
            if name.lower() in {"accept", "accept-language", "user-agent"}
            and not any(secret in value for secret in self.revealed)
        }

    def hide(self, text: str) -> str:
        """What the host has said, without the secrets that it repeats literally."""
        for secret in self.revealed:
            text = text.replace(secret, "***")
        return text


def fill_headers(stored: dict[str, str], secrets: Mapping[str, Secret], url: URL) -> Filled:
    """PollFailed `secret` when one is unknown, or may not be sent there."""
    revealed: dict[str, None] = {}
    host = url.host or ""

    def value_of(header: str, name: str) -> str:
        secret = secrets.get(name)
        if secret is None:
            raise PollFailed(
                "secret", f"headers.{header}: no secret is called {name}: see Monitors(secrets=…)"
            )
        value = secret.for_host(host)
        if value is None:
            raise PollFailed(
                "secret", f"headers.{header}: the secret {name} may not be sent to {host}"
            )
        revealed[value] = None
        return value

    values = {
        header: _SECRET.sub(lambda found, header=header: value_of(header, found[1]), text)  # type: ignore[misc]
        for header, text in stored.items()
    }
    return Filled(url, values, tuple(revealed))
