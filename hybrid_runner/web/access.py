"""Access to pages: everybody may see the state of jobs; what jobs carry, and changes, need the
token.
"""

from __future__ import annotations

import hmac

from aiohttp import web
from pydantic import SecretStr

_CLOSED = (
    "nobody may see what jobs carry, or change them, until the setting HYBRID_RUNNER_HTTP_TOKEN"
    " names a token"
)
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class TokenCheck:
    def __init__(self, token: SecretStr | None) -> None:
        self._token = None if token is None else token.get_secret_value().encode()

    def is_granted(self, request: web.Request) -> bool:
        """Whether the request brings the token. A wrong token is refused, no token is not."""
        said = _bearer_of(request)
        if said is None:
            return False
        if self._token is None:
            raise web.HTTPForbidden(reason=_CLOSED)
        if not self._is_ours(said):
            raise web.HTTPUnauthorized(
                reason="this is not the token of HYBRID_RUNNER_HTTP_TOKEN", headers=_CHALLENGE
            )
        return True

    def brings_token(self, request: web.Request) -> bool:
        """The same for what is open to all: a wrong token is as good as none."""
        return self._is_ours(_bearer_of(request))

    def require(self, request: web.Request) -> None:
        """Refuse the request unless it brings the token."""
        if self._token is None:
            raise web.HTTPForbidden(reason=_CLOSED)
        if not self.is_granted(request):
            raise web.HTTPUnauthorized(
                reason="send the token: Authorization: Bearer …", headers=_CHALLENGE
            )

    def _is_ours(self, said: bytes | None) -> bool:
        return (
            said is not None and self._token is not None and hmac.compare_digest(said, self._token)
        )


def _bearer_of(request: web.Request) -> bytes | None:
    scheme, _, said = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":  # meant for a proxy in front
        return None
    return said.strip().encode("utf-8", "surrogateescape")
