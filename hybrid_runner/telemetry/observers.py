"""Passes the events of a worker on to observers. An observer that fails costs one log line a
minute, never a job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from hybrid_runner.model.events import BatchSettled, LookMade
from hybrid_runner.model.outcomes import Settlement
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.rate_limit import RateLimitedLog

log = logging.getLogger("hybrid_runner.telemetry.observers")
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Observers:
    """Calls each observer, in the worker's loop; `rescued` in the heartbeat's thread."""

    def __init__(
        self,
        searched: Iterable[Callable[[LookMade], None]] = (),
        wrote: Iterable[Callable[[BatchSettled], None]] = (),
        rescued: Iterable[Callable[[Sequence[Settlement]], None]] = (),
    ) -> None:
        self._searched = list(searched)
        self._wrote = list(wrote)
        self._rescued = list(rescued)
        RateLimitedLog.on("observing", [log.name])

    def searched(self, search: LookMade) -> None:
        """A look ended."""
        _notify(self._searched, search)

    def wrote(self, writing: BatchSettled) -> None:
        """Outcomes were written."""
        _notify(self._wrote, writing)

    def rescued(self, settled: Sequence[Settlement]) -> None:
        """Jobs of lost workers were put back or ended."""
        _notify(self._rescued, settled)


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
