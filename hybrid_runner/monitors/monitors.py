"""`Monitors`: what an application has to poll services with; it is made beside its `Runner`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, Unpack

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError, WaitTimeout
from hybrid_runner.handlers.declaration import JobDecorator
from hybrid_runner.model.monitors import EventKind, Format, Polled, PollFailure
from hybrid_runner.monitors.answers.addresses import AddressRules
from hybrid_runner.monitors.answers.previews import preview_service
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.app import App
from hybrid_runner.monitors.kinds import declare_kinds
from hybrid_runner.monitors.poller import Poller
from hybrid_runner.monitors.round import Rounds
from hybrid_runner.monitors.services import (
    ExpectOption,
    MappingOption,
    ServiceCalls,
    columns_of,
)
from hybrid_runner.monitors.subscriptions import HandlerOptions, Subscriptions
from hybrid_runner.policy.monitors import PollRules
from hybrid_runner.resilience.breaker import Breaker
from hybrid_runner.settings import Monitoring
from hybrid_runner.storage import monitor_calls, monitor_view_calls
from hybrid_runner.storage.monitor_schema import install_monitors
from hybrid_runner.storage.queries import Migration
from hybrid_runner.telemetry.metrics.monitor_counters import MonitorCounters
from hybrid_runner.waiting.backoff import Backoff

_FIRST_LOOK: Final = 0.05
_LONGEST_LOOK: Final = 0.5
"""Seconds between two looks for the answer to a poll that was asked for."""
_MISSED: Final = "the worker that tried has no network, so nothing is known of the service"


@dataclass(frozen=True, slots=True)
class PollResult:
    """What a poll that was asked for has found."""

    service_id: int
    ok: bool
    failure: PollFailure | None
    """Why it has failed."""
    error: str | None
    """In one line."""
    latency_ms: int | None
    polled_at: datetime | None
    warnings: tuple[str, ...] = ()


class Monitors(ServiceCalls):
    """Health polling of services: this process takes part in it once it is a worker of `app`, and
    declares `@monitors.on(…)`. What is not given here is as the settings say.
    """

    def __init__(
        self,
        app: App,
        *,
        per_host: int | None = None,
        breaker: Breaker | None = None,
        backoff: Backoff | None = None,
        secrets: AnyMapping[str, Secret] | None = None,
        allow: Iterable[str] | None = None,
        refuse: Literal["private"] | None = None,
        keep_polls: bool | None = None,
    ) -> None:
        """`per_host` polls at a time; `secrets` for headers, by name; `allow` networks that would
        be refused otherwise; `refuse="private"` refuses private and loopback addresses, too;
        `keep_polls` stores an event for each good poll.
        """
        settings = app.settings.monitoring
        self._app = app
        self.counters = MonitorCounters()
        self._subscriptions = Subscriptions(app)
        limit = settings.poll_max_concurrent_per_host if per_host is None else per_host
        self._poller = Poller(
            limit,
            _address_rules(settings, allow, refuse),
            dict(secrets or {}),
            self.counters,
        )
        rounds = Rounds(
            self._poller,
            PollRules(
                breaker or _breaker(settings), backoff or _backoff(settings), settings.monitors_tick
            ),
            self._subscriptions.all,
            self.counters,
            settings.monitors_keep_polls if keep_polls is None else keep_polls,
        )
        declare_kinds(app, rounds)
        app.registry.reports.append(self.counters)

    async def migrate(self, wait: Duration | None = None) -> list[Migration]:
        """Make the schema hybrid_monitors, or bring it to this version; `app.migrate()` comes
        first. The steps that were applied.
        """
        connection = await self._app.connect(wait)
        try:
            return await install_monitors(connection, self._app.connect)
        finally:
            await connection.close()

    def on(self, kind: EventKind, **options: Unpack[HandlerOptions]) -> JobDecorator:
        """Above a function that is told of each event of this kind, as a job of its own: tried
        again if it raises, at least once. `queue`, `max_attempts`, `timeout` and `retry` are those
        of `@app.job`.
        """
        return self._subscriptions.on(kind, **options)

    async def poll(self, name: str, timeout: Duration = "2m") -> PollResult:
        """Poll a service now, whatever its breaker says, and wait for what was found; it counts for
        breaker and backoff. ConfigurationError if a poll of it is on its way; WaitTimeout if no
        worker has polled it in time.
        """
        on = await self._app.pool()
        known = await monitor_view_calls.show_service(on, name)
        service_id = await monitor_calls.ask_poll(on, name)
        pause = _FIRST_LOOK
        try:
            async with asyncio.timeout(parse_duration(timeout).total_seconds()):
                while (answer := await monitor_calls.answer_of_poll(on, service_id)).is_pending:
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, _LONGEST_LOOK)
        except TimeoutError:
            raise WaitTimeout(
                f"nobody has polled {name!r} in time: does a worker of its monitors run?"
            ) from None
        standing = answer.standing
        if not answer.is_there or standing is None:
            raise ConfigurationError(f"{name!r} was paused or removed while it was waited for")
        if known is not None and standing.polled_at == known.line.polled_at:
            return PollResult(service_id, False, "network", _MISSED, None, standing.polled_at)
        return PollResult(
            service_id,
            bool(standing.ok),
            standing.failure,
            standing.error,
            standing.latency_ms,
            standing.polled_at,
            standing.warnings,
        )

    async def preview(
        self,
        url: str,
        mapping: MappingOption = None,
        *,
        expect: ExpectOption = None,
        headers: AnyMapping[str, str] | None = None,
        format: Format | None = None,  # noqa: A002  # as services have it
        timeout: Duration = "10s",
        follow: int = 0,
    ) -> Polled:
        """What a poll of this address would find; nothing is stored."""
        columns = columns_of({"mapping": mapping, "expect": expect})
        service = preview_service(
            url,
            columns["mapping"],
            expect=columns["expect"],
            headers=None if headers is None else dict(headers),
            format=format,
            timeout=parse_duration(timeout),
            follow=follow,
        )
        return await self._poller.preview(service, datetime.now(UTC))


def _breaker(settings: Monitoring) -> Breaker:
    return Breaker(settings.monitors_breaker_failures, settings.monitors_breaker_cooldown)


def _backoff(settings: Monitoring) -> Backoff:
    return Backoff(settings.monitors_backoff, cap=settings.monitors_backoff_cap, jitter=0.0)


def _address_rules(
    settings: Monitoring, allow: Iterable[str] | None, refuse: Literal["private"] | None
) -> AddressRules:
    if allow is None:
        allow = [
            text.strip() for text in (settings.monitors_allow or "").split(",") if text.strip()
        ]
    return AddressRules(allow, refuse or settings.monitors_refuse)
