"""A client of a worker's own pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from tests.support.waiting import until


class Answer(NamedTuple):
    """What came back; every page speaks JSON."""

    status: int
    body: Any


class Browser:
    """Asks one server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, path: str, method: str = "GET") -> Answer:
        """One answer."""
        async with self._session.request(method, path) as response:
            assert response.content_type == "application/json"
            return Answer(response.status, await response.json())

    async def until(self, path: str, status: int) -> Answer:
        """Ask until that status comes; nobody may be there yet."""

        async def look() -> Answer:
            try:
                return await self.get(path)
            except aiohttp.ClientConnectionError as error:
                return Answer(0, str(error))

        return await until(look, lambda answer: answer.status == status, what=f"{status} of {path}")


@asynccontextmanager
async def browser(port: int) -> AsyncIterator[Browser]:
    """A browser of that port on this host."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield Browser(session)
