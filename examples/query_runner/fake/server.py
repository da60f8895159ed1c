"""The fake warehouse: SOAP to start a query and to ask where it stands, REST for everything
else. It plays the script that a query names (scripts.py).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Self
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from aiohttp import web

from examples.query_runner.fake.scripts import Script, script_of

_ENVELOPE = (
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">'
    "<soap:Body>{}</soap:Body></soap:Envelope>"
)
_TOKEN_LASTS = 60.0


@dataclass
class Started:
    """One query that somebody started."""

    run: str
    task: str
    script: Script
    began_at: float


@dataclass
class FakeWarehouse:
    """`speed` makes it play its scripts so many times faster; `late` is how long an answer takes
    that comes too late.
    """

    speed: float = 1.0
    late: float = 15.0
    port: int = 0
    queries: list[Started] = field(default_factory=list)
    deleted: Counter[str] = field(default_factory=Counter)
    """How often somebody removed a run's queries."""
    asked: Counter[str] = field(default_factory=Counter)
    url: str = ""

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._tokens: dict[str, float] = {}
        self._runner: web.AppRunner | None = None

    # --- life

    async def start(self) -> Self:
        app = web.Application()
        app.add_routes(
            [
                web.post("/token", self.token),
                web.post("/soap", self.soap),
                web.get("/queries/{run}", self.is_running),
                web.get("/tables/{run}/count", self.count),
                web.delete("/queries/{run}", self.delete),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def of_run(self, run: str) -> list[Started]:
        return [query for query in self.queries if query.run == run]

    def revoke_tokens(self) -> None:
        self._tokens.clear()

    # --- what it answers

    async def token(self, request: web.Request) -> web.Response:
        said = await request.json()
        if said != {"client_id": "example", "client_secret": "secret"}:
            raise web.HTTPUnauthorized
        token = f"token-{next(self._numbers)}"
        self._tokens[token] = self._now() + _TOKEN_LASTS
        return web.json_response({"access_token": token, "expires_in": _TOKEN_LASTS / self.speed})

    async def soap(self, request: web.Request) -> web.Response:
        body = ET.fromstring(await request.text())  # noqa: S314  # from our own client alone
        match body.find(".//Perform"), body.find(".//Retrieve"):
            case ET.Element() as perform, _:
                return await self._perform(request, perform)
            case _, ET.Element() as retrieve:
                return await self._retrieve(request, retrieve)
        return _fault("neither Perform nor Retrieve")

    async def _perform(self, request: web.Request, perform: ET.Element) -> web.Response:
        self._check_token(request)
        run, sql = perform.findtext("Key", ""), perform.findtext("Query", "")
        query = Started(run, f"task-{next(self._numbers)}", script_of(sql), self._now())
        self.queries.append(query)
        self.asked["start"] += 1
        return _answer(f"<TaskID>{query.task}</TaskID>")

    async def _retrieve(self, request: web.Request, retrieve: ET.Element) -> web.Response:
        task = retrieve.findtext("TaskID", "")
        query = next((query for query in self.queries if query.task == task), None)
        if query is None:
            return _fault(f"there is no task {task}")
        seconds = await self._admit(request, query, "status")
        seen = query.script.at(seconds)
        ended = "<CompletedDate>2030-01-01T00:00:00</CompletedDate>" if seen.hint else ""
        error = f"<ErrorMsg>{escape(seen.error)}</ErrorMsg>"
        return _answer(f"<Status>{seen.status}</Status>{error}{ended}")

    async def is_running(self, request: web.Request) -> web.Response:
        query = self._query_of(request)
        seconds = await self._admit(request, query, "is_running")
        return web.json_response({"isRunning": query.script.at(seconds).is_running})

    async def count(self, request: web.Request) -> web.Response:
        query = self._query_of(request)
        seconds = await self._admit(request, query, "count")
        rows = query.script.at(seconds).rows
        if rows is None:
            raise web.HTTPNotFound
        return web.json_response({"count": rows})

    async def delete(self, request: web.Request) -> web.Response:
        self._check_token(request)
        run = request.match_info["run"]
        self.deleted[run] += 1
        self.asked["delete"] += 1
        return web.Response(status=204)

    # --- inside

    def _now(self) -> float:
        return time.monotonic() * self.speed

    def _check_token(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or self._tokens.get(token, 0.0) < self._now():
            raise web.HTTPUnauthorized

    def _query_of(self, request: web.Request) -> Started:
        queries = self.of_run(request.match_info["run"])
        if not queries:
            raise web.HTTPNotFound
        return queries[-1]

    async def _admit(self, request: web.Request, query: Started, what: str) -> float:
        """The query's age, unless its script has trouble then."""
        self.asked[what] += 1
        seconds = self._now() - query.began_at
        match query.script.trouble_at(seconds):
            case "error":
                raise web.HTTPInternalServerError
            case "cut":
                if request.transport is not None:
                    request.transport.abort()
            case "slow":
                await asyncio.sleep(self.late)
            case "unauthorized":
                raise web.HTTPUnauthorized
            case None:
                self._check_token(request)
        return seconds


def _answer(text: str) -> web.Response:
    return web.Response(text=_ENVELOPE.format(text), content_type="text/xml")


def _fault(reason: str) -> web.Response:
    fault = f"<soap:Fault><faultstring>{escape(reason)}</faultstring></soap:Fault>"
    return web.Response(text=_ENVELOPE.format(fault), content_type="text/xml", status=500)
