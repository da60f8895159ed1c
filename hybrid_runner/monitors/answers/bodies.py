"""The body of an answer: unpacked here, so that no more than the limit ever is."""

from __future__ import annotations

import zlib
from typing import Final

from hybrid_runner.monitors.answers.failures import PollFailed

LARGEST: Final = 1024 * 1024
"""Bytes of the body of one answer, unpacked."""
ENCODINGS: Final = "gzip, deflate"
"""What is asked for; more is not read."""


def unpacked(body: bytes, encoding: str) -> bytes:
    """The body as it was before it was packed; PollFailed `too_large` where that is too much."""
    encoding = encoding.strip().lower()
    if encoding in {"gzip", "x-gzip", "deflate"}:
        body = _decompressed(body, encoding)
    elif encoding not in {"", "identity"}:
        raise PollFailed(
            "parse",
            f"the answer is packed as {encoding[:40]!r}, which was not asked for:"
            f" only {ENCODINGS} are read",
        )
    if len(body) > LARGEST:
        raise PollFailed("too_large", f"the answer has more than {LARGEST:,} bytes")
    return body


def _decompressed(body: bytes, encoding: str) -> bytes:
    """At most one byte more than the limit."""
    window = 16 + zlib.MAX_WBITS
    if encoding == "deflate":  # sent with and without the header of zlib
        window = zlib.MAX_WBITS if body[:1] and body[0] & 0x0F == 8 else -zlib.MAX_WBITS
    unpack = zlib.decompressobj(window)
    try:
        data = unpack.decompress(body, LARGEST + 1)
    except zlib.error:
        raise PollFailed("parse", f"the answer is no {encoding}, as it says") from None
    if unpack.unused_data:
        raise PollFailed("parse", f"the answer goes on after the end of its {encoding}")
    if body and not unpack.eof and len(data) <= LARGEST:
        raise PollFailed("network", "the answer broke off: it is packed, and not whole")
    return data
