"""Every setting, its default and its reason; from arguments first, then from HYBRID_RUNNER_* in the environment."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self, TypedDict

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from hybrid_runner.durations import Duration as AnyDuration
from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import ConfigurationError

PREFIX = "HYBRID_RUNNER_"

_ORDERED = (
    ("poll_base", "poll_cap"),
    ("hybrid_poll_base", "hybrid_poll_cap"),
    ("mute_renewal", "mute"),
)
"""Pairs of which the first may not be longer."""


def _duration(value: object) -> timedelta:
    try:
        return parse_duration(value)  # type: ignore[arg-type]  # whatever a person wrote; parse_duration judges it
    except (ConfigurationError, AttributeError) as error:
        raise ValueError(str(error)) from None


def _can_be_sent(token: SecretStr | None) -> SecretStr | None:
    if token is not None and not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,512}", token.get_secret_value()):
        raise ValueError("must be 16 to 512 letters, digits and . _ ~ + / = -")
    return token


Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(0))]


class Settings(BaseModel):
    """Settings of a runner. Each field is the argument of `Runner` and, upper-cased, HYBRID_RUNNER_<FIELD>."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dsn: Annotated[str | None, Field(repr=False, description="Postgres to use; absent: an embedded one in the data directory.")] = (
        None
    )
    listen_dsn: Annotated[
        str | None, Field(repr=False, description="Postgres for LISTEN when `dsn` goes through a pooler that breaks it.")
    ] = None
    data_dir: Annotated[Path | None, Field(description="Where the embedded Postgres lives; absent: the user's data folder.")] = None
    worker_id: Annotated[
        str | None, Field(min_length=1, max_length=200, description="Name of this worker (WORKER_ID); absent: made up.")
    ] = None
    slots: Annotated[
        int, Field(ge=1, le=100_000, description="Jobs that one worker runs at a time, per queue, unless said there.")
    ] = 200
    thread_slots: Annotated[
        int, Field(ge=1, le=10_000, description="Threads for handlers written as plain `def`; jobs beyond wait for one.")
    ] = 20
    process_slots: Annotated[int, Field(ge=1, le=1024, description='Processes for handlers with executor="process".')] = max(
        1, os.cpu_count() or 1
    )
    heartbeat: Annotated[
        Duration, Field(description="How often a worker says that it lives; at the latest after a third of its lease.")
    ] = timedelta(seconds=10)
    lease: Annotated[Duration, Field(description="Silence after which a worker counts as dead.")] = timedelta(seconds=30)
    overtime: Annotated[
        Duration, Field(description="How long past its time-out a job may run, until it is taken from a worker that hangs.")
    ] = timedelta(seconds=30)
    stall_after: Annotated[
        Duration,
        Field(description="How long a handler may hold up the event loop, until its stack is logged and `/ready` says no."),
    ] = timedelta(seconds=5)
    grace: Annotated[Duration, Field(description="How long running jobs may go on once a stop was asked for.")] = timedelta(
        seconds=25
    )
    keep_completed: Annotated[
        Duration | None, Field(description="How long completed jobs are kept; absent: as the database has it, at first 1h.")
    ] = None
    keep_failed: Annotated[
        Duration | None, Field(description="How long failed jobs are kept; absent: as the database has it, at first 24h.")
    ] = None
    keep_cancelled: Annotated[
        Duration | None, Field(description="How long cancelled jobs are kept; absent: as the database has it, at first 24h.")
    ] = None
    poll_base: Annotated[Duration, Field(description="First fallback poll while the event path is down.")] = timedelta(seconds=5)
    poll_cap: Annotated[Duration, Field(description="Slowest fallback poll while the event path is down.")] = timedelta(seconds=30)
    poll_factor: Annotated[float, Field(ge=1, le=10, description="Growth of the pause after each empty poll.")] = 1.5
    hybrid_poll_base: Annotated[Duration, Field(description="First fallback poll while events arrive.")] = timedelta(seconds=30)
    hybrid_poll_cap: Annotated[Duration, Field(description="Slowest fallback poll while events arrive.")] = timedelta(seconds=60)
    awake_from: Annotated[
        float, Field(gt=0, description="Jobs a second on a queue from which a worker looks by itself and mutes the doorbell.")
    ] = 150
    awake_memory: Annotated[Duration, Field(description="Over how long that rate is measured; older jobs count less.")] = timedelta(
        milliseconds=100
    )
    mute: Annotated[
        Duration,
        Field(le=timedelta(minutes=1), description="How long a worker that looks by itself keeps inserts quiet at a time."),
    ] = timedelta(milliseconds=300)
    mute_renewal: Annotated[Duration, Field(description="How often it renews that.")] = timedelta(milliseconds=100)
    look_share: Annotated[
        float, Field(gt=0, le=1, description="Share of the time that an awake worker may spend on looks that find nothing.")
    ] = 0.25
    look_pause_max: Annotated[Duration, Field(description="Longest pause of an awake worker after a look that found nothing.")] = (
        timedelta(milliseconds=5)
    )
    gather_from: Annotated[
        float,
        Field(gt=0, description="Jobs a second from which it also pauses after a look that found some, so that looks find more."),
    ] = 2000
    gather: Annotated[Duration, Field(description="That pause.")] = timedelta(milliseconds=1)
    gather_outcomes: Annotated[
        Duration, Field(description="How long outcomes gather before they are written, once jobs end at the rate of `awake_from`.")
    ] = timedelta(milliseconds=5)
    flush_claims: Annotated[
        bool,
        Field(
            description="Wait until a claim is on disk. Without, a job that was claimed within the last second before Postgres "
            "crashes may run a second time; nothing is lost either way."
        ),
    ] = False
    frontier_margin: Annotated[
        Duration,
        Field(description="How long before a look an insert may have begun that commits after it and is still found by the next."),
    ] = timedelta(milliseconds=250)
    sweep_every: Annotated[Duration, Field(description="How often an awake worker looks from the start of its lanes.")] = timedelta(
        milliseconds=100
    )
    sweep_factor: Annotated[
        float, Field(ge=0, le=1000, description="The next such look comes no sooner than this many times what the last one cost.")
    ] = 20
    full_after: Annotated[
        Duration, Field(description="How long all slots may be taken before workers that sleep are asked for help.")
    ] = timedelta(milliseconds=20)
    help_after: Annotated[
        Duration, Field(description="How long looks may keep coming back full before workers that sleep are asked for help.")
    ] = timedelta(milliseconds=250)
    fall_pause_max: Annotated[
        Duration, Field(description="Longest pause between looks while transactions that may hold a quiet insert are in flight.")
    ] = timedelta(seconds=1)
    start_timeout: Annotated[
        Duration, Field(description="How long `worker` and `migrate` wait for a server that does not answer yet.")
    ] = timedelta(seconds=60)
    http_host: Annotated[str, Field(min_length=1, description="Where `worker` serves its pages; 0.0.0.0 is everywhere.")] = (
        "127.0.0.1"
    )
    http_port: Annotated[int, Field(ge=0, le=65_535, description="Their port; 0: `worker` serves none.")] = 8080
    http_token: Annotated[
        SecretStr | None,
        AfterValidator(_can_be_sent),
        Field(
            description="Who sends it (`Authorization: Bearer …`) may see what jobs carry, and cancel and retry them; "
            "absent: nobody may."
        ),
    ] = None
    http_readers: Annotated[
        int,
        Field(ge=1, le=10_000, description="How many may read streams of events at a time; each costs a connection and memory."),
    ] = 100
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lambda v: v.lower() if isinstance(v, str) else v),
        Field(description="What is logged: debug, info, warning or error."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "console", "json", "app"],
        BeforeValidator(lambda v: v.lower() if isinstance(v, str) else v),
        Field(
            description="How `worker` logs: console, json, or app (it leaves logging as the application has set it up); "
            "auto: app if the application has set up logging, else console."
        ),
    ] = "auto"
    log_payloads: Annotated[
        bool, Field(description="Whether debug lines about claims show the first characters of the payload; otherwise none does.")
    ] = False

    @model_validator(mode="after")
    def _pairs_fit(self) -> Self:
        for low, high in _ORDERED:
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} must not be longer than {high}")
        return self

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None, **arguments: object) -> Self:
        """Merge arguments over the environment; what is wrong is one line that names the setting."""
        environment = os.environ if environment is None else environment
        values: dict[str, object] = {}
        for field in cls.model_fields:
            text = environment.get(PREFIX + field.upper(), "")
            if text:
                values[field] = text
        if environment.get("WORKER_ID"):
            values.setdefault("worker_id", environment["WORKER_ID"])
        values.update((name, value) for name, value in arguments.items() if value is not None)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigurationError(_one_line(error)) from None

    @property
    def embedded_directory(self) -> Path | None:
        """Where the embedded Postgres lives; None: its own default."""
        return None if self.data_dir is None else self.data_dir / "postgres"

    def name_worker(self) -> str:
        """The configured worker id, or a new one that nobody else has."""
        return self.worker_id or f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


class SettingOptions(TypedDict, total=False):
    """Settings as arguments of `Runner` and `Runner.use`, where `dsn` is an argument of its own; None counts as not given."""

    listen_dsn: str | None
    data_dir: Path | str | None
    worker_id: str | None
    slots: int | None
    thread_slots: int | None
    process_slots: int | None
    heartbeat: AnyDuration | None
    lease: AnyDuration | None
    overtime: AnyDuration | None
    stall_after: AnyDuration | None
    grace: AnyDuration | None
    keep_completed: AnyDuration | None
    keep_failed: AnyDuration | None
    keep_cancelled: AnyDuration | None
    poll_base: AnyDuration | None
    poll_cap: AnyDuration | None
    poll_factor: float | None
    hybrid_poll_base: AnyDuration | None
    hybrid_poll_cap: AnyDuration | None
    awake_from: float | None
    awake_memory: AnyDuration | None
    mute: AnyDuration | None
    mute_renewal: AnyDuration | None
    look_share: float | None
    look_pause_max: AnyDuration | None
    gather_from: float | None
    gather: AnyDuration | None
    gather_outcomes: AnyDuration | None
    flush_claims: bool | None
    frontier_margin: AnyDuration | None
    sweep_every: AnyDuration | None
    sweep_factor: float | None
    full_after: AnyDuration | None
    help_after: AnyDuration | None
    fall_pause_max: AnyDuration | None
    start_timeout: AnyDuration | None
    http_host: str | None
    http_port: int | None
    http_token: SecretStr | str | None
    http_readers: int | None
    log_level: Literal["debug", "info", "warning", "error"] | None
    log_format: Literal["auto", "console", "json", "app"] | None
    log_payloads: bool | None


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return f"settings: {message}"
    field = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"there is no setting {field!r}: see docs/settings.md"
    return f"setting {field} ({PREFIX}{field.upper()}): {message}"
