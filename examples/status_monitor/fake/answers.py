"""What a fake service can do with a request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it should be; `after` so many seconds."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Raw:
    """These bytes, whatever they are, then the connection is closed."""

    sent: bytes = b""


@dataclass(frozen=True, slots=True)
class Drip:
    """A reply of which one byte comes every so many seconds."""

    reply: Reply
    pause: float


@dataclass(frozen=True, slots=True)
class Endless:
    """A body that never ends, however long somebody reads."""

    chunk: bytes = b" " * 16_384


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing, for as long as the client waits."""


Answer: TypeAlias = Reply | Raw | Drip | Endless | Hang


def reply(body: Any, status: int = 200, after: float = 0.0) -> Reply:
    """A reply with this as JSON."""
    return Reply(json.dumps(body, separators=(",", ":")).encode(), status, after=after)


@lru_cache(maxsize=8192)
def as_bytes(answer: Reply) -> bytes:
    """As it goes over the wire."""
    phrase = HTTPStatus(answer.status).phrase
    lines = [f"HTTP/1.1 {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines.append(f"Content-Length: {len(answer.body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body
