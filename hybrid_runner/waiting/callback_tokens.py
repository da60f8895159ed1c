"""Tokens by which somebody without a login signals one job under one name. Pure.

A token is the number of the job, the name, and a code (HMAC) that nobody can make without the
secret of the database. With the secret of a job alone only tokens of that job can be made.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import NamedTuple

from hybrid_runner.errors import ConfigurationError

_FORM = 1
"""The first byte, which a token of another form would have otherwise."""
_CODE = 16
"""Bytes of the code."""
_NUMBER = 8
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{35,128}")


class Callback(NamedTuple):
    """What a token says, whether its code is right or not."""

    job_id: int
    name: str
    code: bytes

    @property
    def key(self) -> str:
        """The key of the signal that it sends."""
        return callback_key(self.job_id, self.name)


def callback_key(job_id: int, name: object) -> str:
    """The key of the signal that the job's callback of that name sends."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ConfigurationError(
            f"{name!r:.80} is no name of a callback: use 1 to 64 letters, digits and . _ -"
        )
    return f"{name}:{job_id}"


def secret_of_job(secret: bytes, job_id: int) -> bytes:
    """The secret of one job, made from that of the database."""
    return hmac.digest(secret, b"job %d" % job_id, hashlib.sha256)


def callback_token(job_secret: bytes, job_id: int, name: str) -> str:
    """The token of this job for this name."""
    callback_key(job_id, name)
    said = _said(job_id, name)
    return _text(said + _code(job_secret, said))


class JobCallbacks(NamedTuple):
    """What makes the callback URLs of one job, and of no other."""

    job_id: int
    job_secret: bytes
    site: str
    """What URLs begin with; empty: they are paths."""

    def url(self, name: str) -> str:
        """Where a POST signals this job under that name."""
        return f"{self.site}/signals/{callback_token(self.job_secret, self.job_id, name)}"


def read_token(text: str) -> Callback | None:
    """What a text says that may be a token; None if it is none."""
    if not _TOKEN.fullmatch(text):
        return None
    try:
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    if _text(found) != text or found[0] != _FORM or len(found) <= 1 + _NUMBER + _CODE:
        return None
    name = found[1 + _NUMBER : -_CODE].decode("ascii", "replace")
    if not _NAME.fullmatch(name):
        return None
    job_id = int.from_bytes(found[1 : 1 + _NUMBER], signed=True)
    return Callback(job_id, name, found[-_CODE:])


def is_genuine(callback: Callback, secret: bytes) -> bool:
    """Whether the token was made with this secret of the database."""
    expected = _code(secret_of_job(secret, callback.job_id), _said(callback.job_id, callback.name))
    return hmac.compare_digest(expected, callback.code)


def _text(token: bytes) -> str:
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _said(job_id: int, name: str) -> bytes:
    return bytes([_FORM]) + job_id.to_bytes(_NUMBER, signed=True) + name.encode()


def _code(job_secret: bytes, said: bytes) -> bytes:
    return hmac.digest(job_secret, said, hashlib.sha256)[:_CODE]
