"""Signals, as a handler sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import lru_cache
from typing import Any, Protocol, TypeVar, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from hybrid_runner.durations import Duration, parse_named
from hybrid_runner.errors import ConfigurationError, SignalRefused
from hybrid_runner.handlers.json_type import JsonType, explain
from hybrid_runner.jsontext import decode
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import check_signal_key
from hybrid_runner.model.outcomes import Suspended
from hybrid_runner.model.signals import WITHOUT_END, AttemptSignals, Given, Wanted

T = TypeVar("T")
NOT_ASYNC = (
    "job.signal() needs an async handler: return Snooze(…, wake_on=…) instead, and read"
    " job.signalled in the next attempt"
)


class TakesSignals(Protocol):
    """What a job asks its worker."""

    def take(self, claim: Claim, key: str, call: int, /) -> Awaitable[Given | None]:
        """What this call of `Job.signal` is given; None: nothing yet."""


class JobSignals:
    """The part of `Job` that is about signals."""

    __slots__ = ()
    _claim: Claim
    _port: TakesSignals

    @property
    def signalled(self) -> Any:
        """After `Snooze(…, wake_on=…)` or `Repeat(…, wake_on=…)`, the payload of the signal that
        woke the job, of several the earliest; None if that was null, or if the time was over.
        """
        signals = self._claim.signals
        return None if signals is None or signals.given is None else decode(signals.given.payload)

    @property
    def timed_out(self) -> bool:
        """Whether the last wait for a signal ended without one."""
        signals = self._claim.signals
        return signals is not None and signals.given is not None and signals.given.signal_id is None

    @overload
    def signal(self, key: str, *, timeout: Duration | None = None) -> Awaitable[Any]: ...
    @overload
    def signal(
        self, key: str, *, timeout: Duration | None = None, type: type[T]
    ) -> Awaitable[T | None]: ...
    def signal(
        self,
        key: str,
        *,
        timeout: Duration | None = None,
        type: Any = None,  # noqa: A002  # as users say it
    ) -> Awaitable[Any]:
        """The payload of the next signal with this key that was sent since the job was created;
        None if none came in time, and `timed_out` says so.

        While there is none, the handler is unwound and the job waits, without a slot; then the
        handler runs again from its top, with `data` as it was, and what calls were given before
        they are given again at once. For `async` handlers; others return `Snooze(…, wake_on=…)`.
        """
        check_signal_key(key)
        pause = parse_named("timeout", timeout)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigurationError(NOT_ASYNC) from None
        wanted = Wanted(key, WITHOUT_END if pause is None else pause)
        return self._signal(wanted, None if type is None else _reader(type))

    async def _signal(self, wanted: Wanted, reader: JsonType | None) -> Any:
        key = wanted.key
        if (signals := self._claim.signals) is None:
            signals = self._claim.signals = AttemptSignals()
        signals.calls[key] = call = signals.calls.get(key, 0) + 1
        given = await self._port.take(self._claim, key, call)
        if given is None:
            signals.waits_for = signals.waits_for or wanted
            raise Suspended(signals.waits_for)
        signals.given = given
        if given.signal_id is None or reader is None:
            return decode(given.payload)
        try:
            return reader.read(given.payload or "null")
        except ValidationError as error:
            raise SignalRefused(
                f"the payload of signal {key} does not fit: {explain(error, 'payload')}"
            ) from None


def _reader(wanted: Any) -> JsonType:
    try:
        return _reader_of(wanted)
    except (PydanticUserError, TypeError):  # of what has no hash, too
        raise ConfigurationError(
            f"job.signal(…, type=…) takes a type that JSON can be read into, such as a pydantic"
            f" model, not {repr(wanted)[:80]}"
        ) from None


@lru_cache(maxsize=1000)
def _reader_of(wanted: Any) -> JsonType:
    return JsonType(TypeAdapter(wanted))
