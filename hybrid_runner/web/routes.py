"""All pages put together: which exist, what each needs, and what is closed at the end."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.connections import LARGEST_BODY, timed, without_banner
from hybrid_runner.web.database import PageConnection, PageDatabase
from hybrid_runner.web.hosts import HostCheck
from hybrid_runner.web.origins import Origins
from hybrid_runner.web.pages.jobs import JobPages
from hybrid_runner.web.pages.monitor_access import MonitorAccess
from hybrid_runner.web.pages.monitors import MonitorPages
from hybrid_runner.web.pages.reports import PageReports
from hybrid_runner.web.pages.scale import ScalePage
from hybrid_runner.web.pages.schedules import SchedulePages
from hybrid_runner.web.pages.signals import SignalPages
from hybrid_runner.web.pages.status import StatusPages, errors_as_json
from hybrid_runner.web.pages.status_page import PublicPage
from hybrid_runner.web.stream.events import EventPages
from hybrid_runner.web.stream.job_stream import JobStream
from hybrid_runner.web.stream.monitor_events import MonitorEventPages
from hybrid_runner.web.stream.monitor_feed import MonitorFeed
from hybrid_runner.web.stream.room import Room


def make_application(
    reports: PageReports, database: PageDatabase | None, *, hosts: HostCheck, readers: int
) -> web.Application:
    """The pages of one worker, or of several processes as one; without a database only the pages
    about the process itself. `readers` is how many event streams may be read at a time.
    """
    origins = Origins(None if database is None else database.settings.pages.http_origins)
    application = web.Application(
        middlewares=[timed, errors_as_json, hosts.middleware(), origins.middleware()],
        client_max_size=LARGEST_BODY,
    )
    application.on_response_prepare.append(without_banner)
    application.on_response_prepare.append(origins.mark)
    application.add_routes(StatusPages(reports).routes())
    if database is not None:
        room = Room(readers)
        stopping = _asks_whether_it_stops(reports)
        _add_job_pages(application, database, room, stopping)
        _add_monitor_pages(application, database, room, stopping)
        _add_scale_page(application, database)
    return application


def _add_job_pages(
    application: web.Application,
    database: PageDatabase,
    room: Room,
    stopping: Callable[[], bool],
) -> None:
    connection = PageConnection(database)
    access = TokenCheck(database.settings.pages.http_token)
    stream = JobStream(database, room, stopping)
    jobs = JobPages(connection, access)
    signals = SignalPages(connection, access)
    schedules = SchedulePages(connection, access)
    events = EventPages(jobs, stream, access)
    application.add_routes(
        [*jobs.routes(), *events.routes(), *signals.routes(), *schedules.routes()]
    )

    async def end_streams(_: web.Application) -> None:
        await stream.close()

    async def close(_: web.Application) -> None:
        await connection.close()

    # Streams end on their own only with their reader: before open requests are waited for.
    application.on_shutdown.append(end_streams)
    application.on_cleanup.append(close)


def _add_monitor_pages(
    application: web.Application,
    database: PageDatabase,
    room: Room,
    stopping: Callable[[], bool],
) -> None:
    connection = PageConnection(database, "pages about monitors")
    of_events = PageConnection(database, "events of monitors")
    settings = database.settings.pages
    access = TokenCheck(settings.http_token)
    monitors = MonitorAccess(connection)
    events = MonitorEventPages(connection, MonitorFeed(of_events), monitors, access, room, stopping)
    public = PublicPage(connection, monitors, settings.http_status)
    application.add_routes(
        [
            web.get("/monitors/events", events.events),  # before those of a service of that name
            *MonitorPages(connection, monitors, access).routes(),
            web.get("/status", public.page),
        ]
    )

    async def end_streams(_: web.Application) -> None:
        await events.close()

    async def close(_: web.Application) -> None:
        await connection.close()
        await of_events.close()

    application.on_shutdown.append(end_streams)
    application.on_cleanup.append(close)


def _asks_whether_it_stops(reports: PageReports) -> Callable[[], bool]:
    return lambda: reports.ready()["phase"] == "stopping"


def _add_scale_page(application: web.Application, database: PageDatabase) -> None:
    scale = ScalePage(database)

    async def close(_: web.Application) -> None:
        await scale.close()

    application.add_routes([web.get("/scale", scale.page)])
    application.on_cleanup.append(close)
