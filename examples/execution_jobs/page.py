"""The application's page. Whoever opens it is its one user."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from uuid import UUID

import asyncpg
from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from examples.execution_jobs.application import Application

PAGE = Path(__file__).with_name("page.html")
USER = UUID(int=1)
LARGEST = 64 * 1024
APPLICATION = web.AppKey("application", Application)
routes = web.RouteTableDef()


class Start(BaseModel):
    """What `POST /executions` takes."""

    name: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    steps: list[str] = Field(min_length=1, max_length=100)
    csv: str = Field(max_length=LARGEST, pattern=r"^[^\x00]*$")

    def rows(self) -> list[dict[str, str]]:
        found = csv.DictReader(io.StringIO(self.csv), restkey="more", restval="")
        return [{name: str(value) for name, value in row.items()} for row in found]


@routes.get("/")
async def page(_: web.Request) -> web.FileResponse:
    return web.FileResponse(PAGE, headers={"Cache-Control": "no-cache"})


@routes.get("/executions")
async def executions(request: web.Request) -> web.Response:
    found = await request.app[APPLICATION].executions(USER)
    return web.Response(text=json.dumps(found, default=str), content_type="application/json")


@routes.post("/executions")
async def start(request: web.Request) -> web.Response:
    _refuse_forms(request)
    try:
        said = Start.model_validate_json(await request.read())
    except ValidationError as error:
        [first, *_] = error.errors()
        where = ".".join(str(part) for part in first["loc"])
        raise web.HTTPUnprocessableEntity(text=f"{where}: {first['msg']}") from error
    application = request.app[APPLICATION]
    try:
        recording = await application.record(USER, said.name, said.steps)
    except asyncpg.DataError as error:  # a NUL in a step
        [why, *_] = str(error).splitlines()
        raise web.HTTPUnprocessableEntity(text=f"steps: {why}") from error
    execution = await application.start(USER, recording, said.rows())
    return web.json_response({"id": str(execution)}, status=201)


@routes.post("/executions/{id}/cancel")
async def cancel(request: web.Request) -> web.Response:
    _refuse_forms(request)
    if not await request.app[APPLICATION].cancel(USER, _id_of(request)):
        raise web.HTTPConflict(text="it has ended already")
    return web.json_response({})


@routes.post("/executions/{id}/again")
async def again(request: web.Request) -> web.Response:
    _refuse_forms(request)
    if not await request.app[APPLICATION].again(USER, _id_of(request)):
        raise web.HTTPConflict(text="it has not ended yet")
    return web.json_response({})


@routes.delete("/recordings/{id}")
async def delete(request: web.Request) -> web.Response:
    await request.app[APPLICATION].delete_recording(USER, _id_of(request))
    return web.json_response({})


def _id_of(request: web.Request) -> UUID:
    try:
        return UUID(request.match_info["id"])
    except ValueError:
        raise web.HTTPNotFound(text="no such id") from None


def _refuse_forms(request: web.Request) -> None:
    """Another site's page can post a form here, but no JSON."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send JSON")


def make_page(application: Application) -> web.Application:
    made = web.Application(client_max_size=2 * LARGEST)
    made[APPLICATION] = application
    made.add_routes(routes)
    return made
