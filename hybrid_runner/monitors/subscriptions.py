"""Who is told of events: each one becomes a job for each handler of its kind, in the statement that
stores it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, cast, get_type_hints

from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.declaration import JobDecorator
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.monitors import EVENT_KIND_PREFIX, EventKind, Subscription
from hybrid_runner.monitors.app import App
from hybrid_runner.monitors.events import EVENTS, MonitorEvent
from hybrid_runner.policy.retry import RetryPolicy

QUEUE = "monitors-events"


class HandlerOptions(TypedDict, total=False):
    """As `@app.job` has them."""

    queue: str
    max_attempts: int
    timeout: Duration | None
    retry: RetryPolicy


class Subscriptions:
    """Those of one application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.all: list[Subscription] = []

    def on(
        self,
        kind: EventKind,
        *,
        queue: str = QUEUE,
        max_attempts: int = 5,
        timeout: Duration | None = "1m",
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  # frozen
    ) -> JobDecorator:
        """Above a function that is told of each event of that kind."""
        if kind not in EVENTS:
            raise ConfigurationError(
                f"@monitors.on({kind!r}): there is no such event: use one of {', '.join(EVENTS)}"
            )

        def decorate(function: Callable[..., Any]) -> JobKind[Any, Any]:
            _check_takes(function, kind)
            name = f"{EVENT_KIND_PREFIX}{kind}:{getattr(function, '__name__', '')}"
            declare = self._app.job(
                name, queue=queue, max_attempts=max_attempts, timeout=timeout, retry=retry
            )
            declared = declare(function)
            self.all.append(Subscription(kind, name, queue, max_attempts))
            return declared

        return cast("JobDecorator", decorate)


def _check_takes(function: Callable[..., Any], kind: EventKind) -> None:
    """ConfigurationError if it says that it takes another kind of event."""
    parameters = [*inspect.signature(function).parameters]
    try:
        takes = get_type_hints(function).get(parameters[0]) if parameters else None
    except NameError:  # whoever makes the kind says which name it is
        return
    if (
        isinstance(takes, type)
        and issubclass(takes, MonitorEvent)
        and not issubclass(EVENTS[kind], takes)
    ):
        raise ConfigurationError(
            f"@monitors.on({kind!r}) gives a {EVENTS[kind].__name__}, and"
            f" {function.__name__}() takes a {takes.__name__}"
        )
