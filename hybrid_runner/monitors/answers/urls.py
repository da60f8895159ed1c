"""URLs that may be polled: the same one line as the triggers in SQL say."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hybrid_runner.errors import ConfigurationError

LONGEST: Final = 2048
LONGEST_HOST: Final = 253
"""Bytes."""
_BLANK: Final = re.compile(r"[\x00-\x20\x7f\\]")
_AUTHORITY: Final = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.%A-Za-z]+\]|[^:\[\]]+)(?::([0-9]*))?")

_NO_HOST: Final = "url must begin with http:// or https:// and name a host"
_NO_PORT: Final = "url has a port that is not 1 to 65535"


@lru_cache(maxsize=4096)
def check_url(url: str) -> None:
    """ConfigurationError in one line when it cannot be polled."""
    if len(url.encode("utf-8", "replace")) > LONGEST:
        raise ConfigurationError(f"url has more than {LONGEST} bytes: make it shorter")
    if _BLANK.search(url):
        raise ConfigurationError(
            "url has a blank or a control character in it: write it as %20 or leave it out"
        )
    authority = _AUTHORITY.match(url)
    if authority is None:
        raise ConfigurationError(_NO_HOST)
    user, _, rest = authority[1].rpartition("@")
    if user or authority[1].startswith("@"):
        raise ConfigurationError(
            "url has a user or password in it: put it into headers, as a secret"
        )
    host = _HOST.fullmatch(rest)
    if host is None:
        if re.search(r":[^:\]]*$", rest) and rest.count(":") == 1 and rest[0] != ":":
            raise ConfigurationError(_NO_PORT)
        raise ConfigurationError(_NO_HOST)
    if len(host[1].encode("utf-8", "replace")) > LONGEST_HOST:
        raise ConfigurationError(
            f"url has a host of more than {LONGEST_HOST} bytes: make it shorter"
        )
    if host[2] is not None and not (host[2] and 1 <= int(host[2][:6]) <= 65535):
        raise ConfigurationError(_NO_PORT)
