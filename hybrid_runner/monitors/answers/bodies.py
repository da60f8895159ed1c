"""The body of an answer: unpacked here, so that no more than the limit ever is."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable
from typing import Final

from hybrid_runner.monitors.answers.failures import PollFailed

LARGEST: Final = 1024 * 1024
"""Bytes of one answer, unpacked."""
ENCODINGS: Final = "gzip, deflate"
"""What is asked for; more is not read."""
_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS}


async def read_body(chunks: AsyncIterable[bytes], encoding: str, announced: int | None) -> bytes:
    """The whole body; PollFailed `too_large` as soon as it is too much."""
    if announced is not None and announced > LARGEST:
        raise _too_large()
    body = _Body(encoding)
    async for chunk in chunks:
        body.feed(chunk)
    return body.whole()


def _too_large() -> PollFailed:
    return PollFailed("too_large", f"the answer has more than {LARGEST:,} bytes")


class _Body:
    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        if self._encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise PollFailed(
                "parse",
                f"the answer is packed as {self._encoding[:40]!r}, which was not asked for:"
                f" only {ENCODINGS} are read",
            )
        self._is_packed = self._encoding not in {"", "identity"}
        self._unpack: zlib._Decompress | None = None
        self._parts: list[bytes] = []
        self._read = 0
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._read += len(data)
        if self._read > LARGEST:
            raise _too_large()
        if not self._is_packed:
            self._keep(data)
            return
        try:
            while data:
                data = self._unpacked(data)
        except zlib.error:
            raise PollFailed("parse", f"the answer is no {self._encoding}, as it says") from None

    def _unpacked(self, data: bytes) -> bytes:
        """What is left of the data: another member follows the first one."""
        if self._unpack is None:
            self._unpack = zlib.decompressobj(self._window(data))
        self._keep(self._unpack.decompress(data, LARGEST - self._size + 1))
        if not self._unpack.eof:
            return b""
        left, self._unpack = self._unpack.unused_data, None
        return left if self._encoding != "deflate" else b""

    def _window(self, data: bytes) -> int:
        """`deflate` is sent with and without the header of zlib."""
        if self._encoding == "deflate":
            return zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS
        return _WINDOWS[self._encoding]

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > LARGEST:
            raise _too_large()
        self._parts.append(data)

    def whole(self) -> bytes:
        if self._unpack is not None:
            raise PollFailed("network", "the answer broke off: it is packed, and not whole")
        return b"".join(self._parts)
