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
        scheme, _, said = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":  # meant for a proxy in front
            return False
        if self._token is None:
            raise web.HTTPForbidden(reason=_CLOSED)
        if not hmac.compare_digest(said.strip().encode("utf-8", "surrogateescape"), self._token):
            raise web.HTTPUnauthorized(
                reason="this is not the token of HYBRID_RUNNER_HTTP_TOKEN", headers=_CHALLENGE
            )
        return True

    def require(self, request: web.Request) -> None:
        """Refuse the request unless it brings the token."""
        if self._token is None:
            raise web.HTTPForbidden(reason=_CLOSED)
        if not self.is_granted(request):
            raise web.HTTPUnauthorized(
                reason="send the token: Authorization: Bearer …", headers=_CHALLENGE
            )
