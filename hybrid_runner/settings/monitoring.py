"""The settings of monitors, as of all fleets that poll services."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hybrid_runner.settings.values import Duration, Section, lower_case


class Monitoring(Section):
    """How monitored services are polled, where `Monitors(…)` does not say it."""

    poll_max_concurrent_per_host: Annotated[
        int,
        Field(ge=1, le=1000, description="Polls of monitored services at a time, for each host."),
    ] = 5
    monitors_tick: Annotated[
        Duration,
        Field(
            ge=timedelta(milliseconds=100),
            le=timedelta(seconds=5),
            description=(
                "What comes due at one host within so long is polled by one round; 5 s at most."
            ),
        ),
    ] = timedelta(seconds=5)
    monitors_breaker_failures: Annotated[
        int,
        Field(ge=1, le=1000, description="Failed polls in a row that open a service's breaker."),
    ] = 10
    monitors_breaker_cooldown: Annotated[
        Duration,
        Field(description="How long an open breaker waits until one poll is tried again."),
    ] = timedelta(minutes=5)
    monitors_backoff: Annotated[
        Duration,
        Field(
            description="Pause after a failed poll, if the interval is shorter; each doubles it."
        ),
    ] = timedelta(seconds=1)
    monitors_backoff_cap: Annotated[
        Duration, Field(description="Longest pause after failed polls.")
    ] = timedelta(minutes=5)
    monitors_refuse: Annotated[
        Literal["private"] | None,
        BeforeValidator(lower_case),
        Field(
            description=(
                "`private`: services at private and loopback addresses are not polled; link-local"
                " ones never are."
            )
        ),
    ] = None
    monitors_allow: Annotated[
        str | None,
        Field(
            description=(
                "Networks that may be polled all the same, separated by commas: `10.1.0.0/16`."
            )
        ),
    ] = None
    monitors_keep_polls: Annotated[
        bool,
        Field(description="Whether each good poll is stored as an event, too."),
    ] = False
