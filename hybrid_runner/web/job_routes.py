"""Puts the pages about jobs together: access, questions, the stream, and their end."""

from __future__ import annotations

from aiohttp import web

from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.page_database import PageDatabase
from hybrid_runner.web.pages.jobs import JobPages
from hybrid_runner.web.pages.reports import Reports
from hybrid_runner.web.stream.events import EventPages
from hybrid_runner.web.stream.stream import JobStream


def add_job_pages(application: web.Application, source: PageDatabase, reports: Reports) -> None:
    """Its readers end before its requests are waited for."""
    questions = PageConnection(source)
    stream = JobStream(source, lambda: reports.ready()["phase"] == "stopping")
    jobs = JobPages(questions, TokenCheck(source.settings.pages.http_token))
    application.add_routes([*jobs.routes(), *EventPages(jobs, stream).routes()])

    async def end_readers(_: web.Application) -> None:
        await stream.close()

    async def close(_: web.Application) -> None:
        await questions.close()

    application.on_shutdown.append(end_readers)
    application.on_cleanup.append(close)
