"""The page: start a run, watch it live, cancel it. What it stores and what it enqueues are one
transaction; what it shows comes from the jobs as they move.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from pathlib import Path
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from examples.query_runner.app import Query, app, execute, runs
from examples.query_runner.fake.scripts import SCRIPTS
from examples.query_runner.runs import Run, new_run
from hybrid_runner import JobCancelled, JobFailed, JobNotFound, WaitTimeout

PAGE = Path(__file__).with_name("page.html")
routes = web.RouteTableDef()


class Start(BaseModel):
    """What `POST /runs` takes."""

    sql: str = Field(min_length=1, max_length=10_000, pattern=r"^[^\x00]*$")


@routes.get("/")
async def page(_: web.Request) -> web.FileResponse:
    return web.FileResponse(PAGE, headers={"Cache-Control": "no-cache"})


@routes.get("/runs")
async def newest(_: web.Request) -> web.Response:
    shown = [run.model_dump(mode="json") for run in await runs.newest()]
    return web.json_response(
        {"runs": shown, "scripts": {name: script.about for name, script in SCRIPTS.items()}}
    )


@routes.post("/runs")
async def start(request: web.Request) -> web.Response:
    """The run and its first job are stored together, or neither is."""
    _refuse_forms(request)
    try:
        said = Start.model_validate_json(await request.read())
    except ValidationError as error:
        raise web.HTTPUnprocessableEntity(text=f"sql: {error.errors()[0]['msg']}") from error
    run, pool = new_run(), await runs.open()
    async with pool.acquire() as connection, connection.transaction():
        query = Query(run=str(run), sql=said.sql)
        job = await app.enqueue(execute, query, key=f"start-{run}", connection=connection)
        await runs.add(connection, run, said.sql, job.id)
    return web.Response(
        status=201,
        text=(await _get(run)).model_dump_json(),
        content_type="application/json",
        headers={"Location": f"/runs/{run}"},
    )


@routes.get("/runs/{id}")
async def show(request: web.Request) -> web.Response:
    run = await _run_of(request)
    return web.Response(text=run.model_dump_json(), content_type="application/json")


@routes.post("/runs/{id}/cancel")
async def cancel(request: web.Request) -> web.Response:
    """A waiting run ends at once, one that is being looked at after that look."""
    _refuse_forms(request)
    run = await _run_of(request)
    while (job_id := await runs.live_job(run.id)) is not None:
        answer = await app.cancel(job_id, "somebody cancelled it on the page")
        if answer == "requested":  # it may complete before it is told
            try:
                await app.handle(job_id).wait("10s")
            except (JobCancelled, JobFailed, WaitTimeout):
                return web.json_response({"cancel": answer})
        elif answer != "finished":  # else it ended just now, perhaps with a follow-up
            return web.json_response({"cancel": answer})
    raise web.HTTPConflict(text="the run has ended already")


@routes.get("/runs/{id}/events")
async def events(request: web.Request) -> web.StreamResponse:
    """The run as its row says, then what its jobs do, then its end."""
    run = await _run_of(request)
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    await response.write(_event(run))
    if not run.is_over:
        job_id = await runs.live_job(run.id) or run.job_id
        with suppress(JobNotFound):  # somebody deleted it: the browser asks again
            await _pass_on(job_id, run, response)
    return response


async def _pass_on(job_id: int, run: Run, response: web.StreamResponse) -> None:
    async with aclosing(app.events(job_id, follow_ups=True)) as changes:
        async for change in changes:
            await response.write(change.as_sse())
            if change.job.state.final:
                await response.write(_event(await _get(run.id)))


def _event(run: Run) -> bytes:
    return f"event: run\ndata: {run.model_dump_json()}\n\n".encode()


async def _run_of(request: web.Request) -> Run:
    try:
        return await _get(UUID(request.match_info["id"]))
    except ValueError:
        raise web.HTTPNotFound(text="no such run") from None


async def _get(run: UUID) -> Run:
    found = await runs.get(run)
    if found is None:
        raise web.HTTPNotFound(text="no such run")
    return found


def _refuse_forms(request: web.Request) -> None:
    """Another site's page can post a form here, but no JSON."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send JSON")


def make_page() -> web.Application:
    made = web.Application(client_max_size=64 * 1024)
    made.add_routes(routes)
    return made
