"""The settings that anybody may change, in sections.

Each field is an argument of `Runner` and, in upper case, a variable HYBRID_RUNNER_<FIELD>. Its
description is what docs/settings.md says.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from hybrid_runner.settings.values import Duration, Section, check_order, check_token, lower_case


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
            description="Name of this worker (WORKER_ID); absent: made up.",
        ),
    ] = None
    slots: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Jobs that one worker runs at a time, per queue, unless said there.",
        ),
    ] = 200
    thread_slots: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description="Threads for handlers written as plain `def`; jobs beyond wait for one.",
        ),
    ] = 20
    process_slots: Annotated[
        int,
        Field(ge=1, le=1024, description='Processes for handlers with executor="process".'),
    ] = max(1, os.cpu_count() or 1)
    heartbeat: Annotated[
        Duration,
        Field(
            description=(
                "How often a worker says that it lives; at the latest after a third of its lease."
            )
        ),
    ] = timedelta(seconds=10)
    lease: Annotated[
        Duration, Field(description="Silence after which a worker counts as dead.")
    ] = timedelta(seconds=30)
    timeout_grace: Annotated[
        Duration,
        Field(
            description=(
                "How long past its time-out a job may run, until it is taken from a worker that"
                " hangs."
            )
        ),
    ] = timedelta(seconds=30)
    stall_after: Annotated[
        Duration,
        Field(
            description=(
                "How long a handler may hold up the event loop, until its stack is logged and"
                " `/ready` says no."
            )
        ),
    ] = timedelta(seconds=5)
    grace: Annotated[
        Duration,
        Field(description="How long running jobs may go on once a stop was asked for."),
    ] = timedelta(seconds=25)
    flush_claims: Annotated[
        bool,
        Field(
            description=(
                "Wait until a claim is on disk. Without, a job that was claimed within the "
                "last second before Postgres crashes may run a second time; nothing is lost either "
                "way."
            )
        ),
    ] = False


class Polling(Section):
    """The fallback poll: what finds jobs whose ring was lost."""

    poll_base: Annotated[
        Duration, Field(description="First fallback poll while no rings can arrive.")
    ] = timedelta(seconds=5)
    poll_cap: Annotated[
        Duration, Field(description="Slowest fallback poll while no rings can arrive.")
    ] = timedelta(seconds=30)
    poll_factor: Annotated[
        float, Field(ge=1, le=10, description="Growth of the pause after each empty poll.")
    ] = 1.5
    hybrid_poll_base: Annotated[
        Duration, Field(description="First fallback poll while rings arrive.")
    ] = timedelta(seconds=30)
    hybrid_poll_cap: Annotated[
        Duration, Field(description="Slowest fallback poll while rings arrive.")
    ] = timedelta(seconds=60)

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
                "How long completed jobs are kept; absent: as the database has it, at first 1h."
            )
        ),
    ] = None
    keep_failed: Annotated[
        Duration | None,
        Field(
            description=(
                "How long failed jobs are kept; absent: as the database has it, at first 24h."
            )
        ),
    ] = None
    keep_cancelled: Annotated[
        Duration | None,
        Field(
            description=(
                "How long cancelled jobs are kept; absent: as the database has it, at first 24h."
            )
        ),
    ] = None


class Pages(Section):
    """What a worker serves over HTTP."""

    http_host: Annotated[
        str,
        Field(min_length=1, description="Where `worker` serves its pages; 0.0.0.0 is everywhere."),
    ] = "127.0.0.1"
    http_port: Annotated[
        int, Field(ge=0, le=65_535, description="Their port; 0: `worker` serves none.")
    ] = 8080
    http_token: Annotated[
        SecretStr | None,
        AfterValidator(check_token),
        Field(
            description=(
                "Who sends it (`Authorization: Bearer …`) may see what jobs carry, and "
                "cancel and retry them; absent: nobody may."
            )
        ),
    ] = None
    http_readers: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description=(
                "How many may read streams of events at a time; each costs a connection and memory."
            ),
        ),
    ] = 100


class Logs(Section):
    """What is logged, and how."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lower_case),
        Field(description="What is logged: debug, info, warning or error."),
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
                "Whether debug lines about claims show the first characters of the payload;"
                " otherwise none does."
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
)
"""The attributes of `Settings`, in the order of docs/settings.md."""
