"""Tells observers what happens in a worker; what goes wrong in one of them costs a line a minute, never a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from hybrid_runner.happenings import Search, Writing
from hybrid_runner.outcomes import Settlement
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.seldom import Seldom

log = logging.getLogger("hybrid_runner.telemetry.observers")
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Observers:
    """Each is told, in this order, in the worker's loop.

    Of what is rescued they are told in the heartbeat's thread.
    """

    def __init__(
        self,
        searched: Iterable[Callable[[Search], None]] = (),
        wrote: Iterable[Callable[[Writing], None]] = (),
        rescued: Iterable[Callable[[Sequence[Settlement]], None]] = (),
    ) -> None:
        self._searched = list(searched)
        self._wrote = list(wrote)
        self._rescued = list(rescued)
        Seldom.on("observing", [log.name])

    def searched(self, search: Search) -> None:
        """A look ended."""
        _tell(self._searched, search)

    def wrote(self, writing: Writing) -> None:
        """Outcomes were written."""
        _tell(self._wrote, writing)

    def rescued(self, settled: Sequence[Settlement]) -> None:
        """Jobs of lost workers were put back or ended."""
        _tell(self._rescued, settled)


def harmless(call: Callable[P, R | None]) -> Callable[P, R | None]:
    """For what is asked of an observer beside that: if it fails, the answer is None."""

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            _complain(call, error)
            return None

    return guarded


def _tell(observers: Sequence[Callable[[T], None]], what: T) -> None:
    for tell in observers:
        try:
            tell(what)
        except Exception as error:  # the jobs of this batch are claimed, or written down: they must go on
            _complain(tell, error)


def _complain(about: Callable[..., object], error: Exception) -> None:
    log.error(
        "%s failed: %s: %s",
        getattr(about, "__qualname__", about),
        type(error).__name__,
        error,
        extra=log_event("telemetry.observer_failed"),
    )
