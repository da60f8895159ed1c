"""Passes the events of a worker on to observers. An observer that fails costs one log line a
minute, never a job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from hybrid_runner.model.events import BatchSettled, LookMade, Observer
from hybrid_runner.model.settlements import Settlement
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog

log = logging.getLogger("hybrid_runner.telemetry.observers")
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Observers(Observer):
    """Calls each of several observers, in their order."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        observers = tuple(observers)
        self._on_look = [one.on_look for one in observers]
        self._on_settled = [one.on_settled for one in observers]
        self._on_rescued = [one.on_rescued for one in observers]
        RateLimitedLog.on("observing", [log.name])

    def on_look(self, look: LookMade) -> None:
        _notify(self._on_look, look)

    def on_settled(self, batch: BatchSettled) -> None:
        _notify(self._on_settled, batch)

    def on_rescued(self, settled: Sequence[Settlement]) -> None:
        _notify(self._on_rescued, settled)


def harmless(call: Callable[P, R | None]) -> Callable[P, R | None]:
    """Decorator for other calls of an observer: if the call fails, it returns None."""

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            _log_failure(call, error)
            return None

    return guarded


def _notify(observers: Sequence[Callable[[T], None]], event: T) -> None:
    for observe in observers:
        try:
            observe(event)
        except Exception as error:  # the jobs of this event are claimed or settled: they must go on
            _log_failure(observe, error)


def _log_failure(call: Callable[..., object], error: Exception) -> None:
    log.error(
        "%s failed: %s: %s",
        getattr(call, "__qualname__", call),
        type(error).__name__,
        error,
        extra=log_event("telemetry.observer_failed"),
    )
