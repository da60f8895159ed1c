"""The public settings, in sections.

Each field is an argument of `Runner` and, in upper case, a variable HYBRID_RUNNER_<FIELD>. Its
description is what docs/settings.md says.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from hybrid_runner.settings.monitoring import Monitoring
from hybrid_runner.settings.values import (
    Duration,
    Section,
    check_hosts,
    check_order,
    check_origins,
    check_status,
    check_token,
    check_url,
    lower_case,
)


class Database(Section):
    """Which Postgres is used."""

    dsn: Annotated[
        str | None,
        Field(
            repr=False,
            description="Postgres to use; absent: an embedded one in the data directory.",
        ),
    ] = None
    listen_dsn: Annotated[
        str | None,
        Field(
            repr=False,
            description="Postgres for LISTEN when `dsn` goes through a pooler that breaks it.",
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        Field(description="Where the embedded Postgres lives; absent: the user's data folder."),
    ] = None
    start_timeout: Annotated[
        Duration,
        Field(
            description=(
                "How long `worker` and `migrate` wait for a server that does not answer yet."
            )
        ),
    ] = timedelta(seconds=60)

    @property
    def embedded_directory(self) -> Path | None:
        """Where the embedded Postgres lives; None: its own default."""
        return None if self.data_dir is None else self.data_dir / "postgres"


class Work(Section):
    """How a worker runs jobs, and how it is stopped."""

    worker_id: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Name of this worker (or WORKER_ID); absent: a new one.",
        ),
    ] = None
    slots: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Jobs of one queue that a worker runs at a time, unless said there.",
        ),
    ] = 200
    thread_slots: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description="Threads for handlers written as plain `def`; further jobs wait for one.",
        ),
    ] = 20
    process_slots: Annotated[
        int,
        Field(ge=1, le=1024, description='Processes for handlers with executor="process".'),
    ] = max(1, os.cpu_count() or 1)
    payload_mib: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            description=(
                "How many MiB of memory the payloads above 4 KiB of the jobs that a worker runs at"
                " a time may take, about; further jobs wait for room."
            ),
        ),
    ] = 256
    heartbeat: Annotated[
        Duration,
        Field(
            description=(
                "How often a worker says that it lives; a third of `lease` if that is less."
            )
        ),
    ] = timedelta(seconds=10)
    lease: Annotated[
        Duration,
        Field(
            le=timedelta(days=1),
            description="How long after its last heartbeat a worker counts as dead; a day at most.",
        ),
    ] = timedelta(seconds=30)
    row_heartbeat: Annotated[
        Duration,
        Field(
            ge=timedelta(seconds=1),
            le=timedelta(hours=1),
            description=(
                "How often rows of attached tables that have a column for it show that their jobs"
                " still run; 1 s to 1 h."
            ),
        ),
    ] = timedelta(seconds=30)
    timeout_grace: Annotated[
        Duration,
        Field(
            description=(
                "How long a job may run past its time-out, before it is taken from a worker that"
                " hangs."
            )
        ),
    ] = timedelta(seconds=30)
    stall_after: Annotated[
        Duration,
        Field(
            description=(
                "How long a handler may block the event loop, before its stack is logged and"
                " `/ready` says no."
            )
        ),
    ] = timedelta(seconds=5)
    grace: Annotated[
        Duration,
        Field(description="How long running jobs may go on after the worker was asked to stop."),
    ] = timedelta(seconds=25)
    flush_claims: Annotated[
        bool,
        Field(
            description=(
                "Whether a claim waits until it is on disk. Without, a job that was claimed within"
                " the last second before a crash of Postgres may run a second time; nothing is lost"
                " either way."
            )
        ),
    ] = False


class Polling(Section):
    """The fallback poll: what finds jobs whose ring was lost."""

    poll_base: Annotated[
        Duration, Field(description="First pause between fallback polls while no rings can arrive.")
    ] = timedelta(seconds=5)
    poll_cap: Annotated[
        Duration,
        Field(description="Longest pause between fallback polls while no rings can arrive."),
    ] = timedelta(seconds=30)
    poll_factor: Annotated[
        float,
        Field(
            ge=1,
            le=10,
            description="By how much each poll that finds nothing multiplies the pause.",
        ),
    ] = 1.5
    hybrid_poll_base: Annotated[
        Duration, Field(description="First pause between fallback polls while rings arrive.")
    ] = timedelta(seconds=30)
    hybrid_poll_cap: Annotated[
        Duration, Field(description="Longest pause between fallback polls while rings arrive.")
    ] = timedelta(seconds=60)

    row_check: Annotated[
        Duration,
        Field(
            ge=timedelta(minutes=1),
            le=timedelta(minutes=5),
            description=(
                "How often rows of attached tables are compared with their jobs; a minute at least,"
                " five at most."
            ),
        ),
    ] = timedelta(minutes=1)

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        check_order(self, "poll_base", "poll_cap")
        check_order(self, "hybrid_poll_base", "hybrid_poll_cap")
        return self


class Retention(Section):
    """How long ended jobs can be read."""

    keep_completed: Annotated[
        Duration | None,
        Field(
            description=(
                "How long completed jobs are kept; absent: as set in the database, 1h at first."
            )
        ),
    ] = None
    keep_failed: Annotated[
        Duration | None,
        Field(
            description=(
                "How long failed jobs are kept; absent: as set in the database, 24h at first."
            )
        ),
    ] = None
    keep_cancelled: Annotated[
        Duration | None,
        Field(
            description=(
                "How long cancelled jobs are kept; absent: as set in the database, 24h at first."
            )
        ),
    ] = None


class Pages(Section):
    """What a worker serves over HTTP."""

    http_host: Annotated[
        str,
        Field(
            min_length=1,
            description="The address at which `worker` serves pages; 0.0.0.0: all addresses.",
        ),
    ] = "127.0.0.1"
    http_port: Annotated[
        int, Field(ge=0, le=65_535, description="The port of the pages; 0: `worker` serves none.")
    ] = 8080
    http_token: Annotated[
        SecretStr | None,
        AfterValidator(check_token),
        Field(
            description=(
                "Requests with this token (`Authorization: Bearer …`) may read payloads and"
                " results, and cancel and retry jobs; absent: none may."
            )
        ),
    ] = None
    http_readers: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description=(
                "How many event streams may be read at a time, each of which takes a connection and"
                " memory; beyond that only with the token."
            ),
        ),
    ] = 100
    http_connections: Annotated[
        int | None,
        Field(
            ge=1,
            le=40_000,
            description=(
                "How many clients may be connected to the pages at a time, and never more than a"
                " fourth of the files that the process may open; absent: four times"
                " `http_readers`."
            ),
        ),
    ] = None
    http_hosts: Annotated[
        str | None,
        AfterValidator(check_hosts),
        Field(
            description=(
                "Names by which the pages may be asked for (`Host`), separated by commas, beside"
                " `localhost` and addresses; absent: any, but on a loopback address only those."
            )
        ),
    ] = None
    http_origins: Annotated[
        str | None,
        AfterValidator(check_origins),
        Field(
            description=(
                "Sites whose pages may read in a browser where jobs stand (`/events`,"
                " `/jobs/{id}` and its events): `https://runs.example.org`, several separated by"
                " commas; absent: none."
            )
        ),
    ] = None
    http_url: Annotated[
        str | None,
        AfterValidator(check_url),
        Field(
            description=(
                "The address under which others reach these pages, such as"
                " `https://jobs.example.org`: what `job.callback_url` begins with, and a name by"
                " which they may be asked for; absent: callback URLs are paths."
            )
        ),
    ] = None
    http_status: Annotated[
        str | None,
        AfterValidator(check_status),
        Field(
            description=(
                "What `GET /status` shows to everybody of monitored services: `all`, or those with"
                " one label, as `public=true`; absent: there is no such page."
            )
        ),
    ] = None


class Logs(Section):
    """What is logged, and how."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lower_case),
        Field(description="The lowest level that is logged: debug, info, warning or error."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "console", "json", "app"],
        BeforeValidator(lower_case),
        Field(
            description=(
                "How `worker` logs: console, json, or app (it leaves logging as the "
                "application has set it up); auto: app if the application has set up logging, else "
                "console."
            )
        ),
    ] = "auto"
    log_payloads: Annotated[
        bool,
        Field(
            description=(
                "Whether debug lines about claims show the first characters of the payload."
            )
        ),
    ] = False


SECTIONS: tuple[tuple[str, type[Section]], ...] = (
    ("database", Database),
    ("work", Work),
    ("polling", Polling),
    ("retention", Retention),
    ("pages", Pages),
    ("logs", Logs),
    ("monitoring", Monitoring),
)
"""The attributes of `Settings`, in the order of docs/settings.md."""
