"""A reader of server-sent events, and a worker whose pages are about real jobs."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from hybrid_runner import Job, Retry, Runner, Snooze, Worker
from hybrid_runner.model.messages import Channel, JobsChanged
from hybrid_runner.storage import stream_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.web.server import PageServer
from tests.support.pages import Browser, browser
from tests.support.ports import free_port
from tests.support.working import runner, working

TOKEN = "a-token-of-this-test"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def changes_channel(database: Fetches) -> Channel[JobsChanged]:
    """Where the streams of this database hear of changes."""
    return (await stream_calls.stream_readers(database)).channel


class Event(NamedTuple):
    """One event as a browser would dispatch it."""

    name: str
    id: str | None
    data: dict[str, Any]


class Events:
    """What one stream says."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.comments: list[str] = []
        self.hint: str | None = None

    async def next(self) -> Event:
        """The next event; an error when the stream has ended."""
        if (found := await self._read()) is None:
            raise AssertionError("the stream has ended")
        return found

    async def next_text(self) -> str:
        """The next event as it was sent, for data that Python cannot hold."""
        lines: list[str] = []
        while (line := await self._line()) is not None:
            if line:
                lines.append(line)
            elif any(line.startswith("data: ") for line in lines):
                return "\n".join(lines)
            else:
                lines = []
        raise AssertionError("the stream has ended")

    async def until(self, name: str) -> Event:
        """Read on until an event has that name."""
        while (found := await self.next()).name != name:
            pass
        return found

    async def rest(self) -> list[str]:
        """The names of all events until the stream ends by itself."""
        names = []
        while (found := await self._read()) is not None:
            names.append(found.name)
        return names

    async def comment(self) -> str:
        """Read on until a comment comes."""
        while not self.comments:
            await self._line()
        return self.comments.pop(0)

    async def _read(self) -> Event | None:
        fields: dict[str, str] = {}
        while (line := await self._line()) is not None:
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                return Event(fields["event"], fields.get("id"), json.loads(fields["data"]))
        return None

    async def _line(self) -> str | None:
        async with asyncio.timeout(120):
            raw = await self.response.content.readline()
        if not raw:
            return None
        assert raw.endswith(b"\n")
        line = raw[:-1].decode()
        if line.startswith(":"):
            self.comments.append(line.removeprefix(": "))
        if line.startswith("retry: "):
            self.hint = line
        return line


class Pages(Browser):
    """A browser that also reads streams."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        super().__init__(session)
        self.port = port
        self.session = session

    @asynccontextmanager
    async def events(self, path: str, seen: str | None = None) -> AsyncIterator[Events]:
        """One stream, hung up at the end."""
        headers = {} if seen is None else {"Last-Event-ID": seen}
        async with self.session.get(path, headers=headers) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream"), (
                await response.text()
            )
            yield Events(response)


@asynccontextmanager
async def pages(port: int) -> AsyncIterator[Pages]:
    """A browser of that port that never gives up waiting."""
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{port}", timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        yield Pages(session, port)


class Stepwise:
    """A runner whose jobs `steps` do what they are told, one step after the other."""

    def __init__(self, dsn: str, **settings: Any) -> None:
        self.app: Runner = runner(dsn, **settings)
        self.orders: asyncio.Queue[Callable[[Job], Any]] = asyncio.Queue()

        @self.app.job("steps")
        async def steps(payload: dict[str, int], job: Job) -> Any:
            while True:
                said = (await self.orders.get())(job)
                if not inspect.isawaitable(said):
                    return said
                await said

        @self.app.job("brief", queue="images")
        async def brief(payload: dict[str, int]) -> int:
            return 1

    def say(self, value: Any) -> None:
        """End the attempt with that value."""
        self.orders.put_nowait(lambda _: value)

    def progress(self, fraction: float) -> None:
        """Report how far it is."""
        self.orders.put_nowait(lambda job: job.progress(fraction))

    def snooze(self, delay: str) -> None:
        """Once more, later, uncharged."""
        self.say(Snooze(delay))

    def retry(self, after: str) -> None:
        """Once more, later, charged."""
        self.say(Retry(after=after))


@asynccontextmanager
async def served(
    app: Runner, *, deaf: bool = False, queues: Mapping[str, int] | None = None
) -> AsyncIterator[tuple[Pages, Worker]]:
    """A worker and its pages."""
    port = free_port()
    async with (
        PageServer("127.0.0.1", port, database=app.page_database()) as server,
        pages(port) as client,
        working(app, queues, deaf=deaf) as worker,
    ):
        server.show(worker.status)
        yield client, worker


__all__ = ["BEARER", "TOKEN", "Event", "Events", "Pages", "Stepwise", "browser", "pages", "served"]


async def status_of(client: Pages, path: str) -> int:
    async with client.session.get(path) as response:
        return response.status
