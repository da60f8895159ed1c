"""Services that answer as healthy ones do, as cheaply as Python can: `python -m
hybrid_runner.bench.services HOSTS`. Each address from 127.0.1.1 on is a host.

Commands: `clear`; `polls` (how many requests came, and how late each was).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from array import array
from typing import Any

from hybrid_runner.bench.stopwatch import obey, run_fast, say

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def _answer(latency: int) -> bytes:
    items = [
        {
            "name": f"{kind} of it",
            "type": kind,
            "healthy": True,
            "health": {"state": 0, "code": 200, "latency": latency + number},
            "contact": {"team": "payments"},
            "lastChecked": f"2030-01-01T00:00:{latency % 60:02}Z",
        }
        for number, kind in enumerate(("database", "cache", "queue", "rest", "smtp"), 1)
    ]
    body = json.dumps(items).encode()
    return _HEAD % len(body) + body


_ANSWERS = [_answer(latency) for latency in range(97)]
"""Latencies and times differ from one answer to the next, and nothing else does."""


class Seen:
    """When each service was asked last."""

    def __init__(self) -> None:
        self.polls = 0
        self.apart = array("d")
        """Seconds between two requests of one service."""
        self._last: dict[bytes, float] = {}

    def note(self, service: bytes) -> None:
        self.polls += 1
        now = time.monotonic()
        if (before := self._last.get(service)) is not None:
            self.apart.append(now - before)
        self._last[service] = now

    def clear(self) -> None:
        self.polls = 0
        del self.apart[:]


class _Connection(asyncio.Protocol):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while b"\r\n\r\n" in self._heard:
            head, _, self._heard = self._heard.partition(b"\r\n\r\n")
            self._seen.note(head.partition(b"/")[2].partition(b" ")[0])
            self._transport.write(_ANSWERS[self._seen.polls % len(_ANSWERS)])


def host(number: int) -> str:
    """The address that stands for one of the hosts."""
    return f"127.0.1.{number + 1}"


async def main() -> None:
    """Answer until stdin is closed."""
    loop, seen, port = asyncio.get_running_loop(), Seen(), 0
    servers = []
    for number in range(int(sys.argv[1])):
        server = await loop.create_server(lambda: _Connection(seen), host(number), port)
        port = server.sockets[0].getsockname()[1]
        servers.append(server)

    async def polls(_: list[str]) -> dict[str, Any]:
        return {"polls": seen.polls, "apart": list(seen.apart)}

    async def clear(_: list[str]) -> None:
        seen.clear()

    say({"port": port})
    await obey({"polls": polls, "clear": clear})
    for server in servers:
        server.close()


if __name__ == "__main__":
    run_fast(main)
