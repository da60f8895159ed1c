"""Spans of our own. Making one takes a microsecond; the thread that sends them turns them into
bytes, or into spans of the SDK.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Self

from opentelemetry.context import attach, detach
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from hybrid_runner.jsontext import printable
from hybrid_runner.secrets import hide
from hybrid_runner.telemetry.observers import harmless
from hybrid_runner.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

Value = str | bool | int | float | Sequence[str] | Sequence[bool] | Sequence[int] | Sequence[float]
Attributes = Mapping[str, Value] | None

SCOPE = "hybrid_runner", VERSION
"""Name and version of what makes these spans."""
MOST = 128
"""Attributes, events and links of one span, each: the limit of the specification."""
LONGEST = 16_384
"""Characters of a text in an attribute; the rest is cut off."""
_LATEST = 2**63
SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class SpanEvent(NamedTuple):
    """An event on a span."""

    name: str
    at: int
    attributes: Mapping[str, Value]


class RecordedSpan(NamedTuple):
    """A span that has ended. Times are nanoseconds since 1970."""

    name: str
    kind: SpanKind
    trace_id: int
    span_id: int
    parent_id: int | None
    began: int
    ended: int
    attributes: Mapping[str, Value]
    events: Sequence[SpanEvent] = ()
    links: Sequence[tuple[int, int]] = ()
    """Trace and span ids."""
    status: StatusCode = StatusCode.UNSET
    description: str | None = None


def new_span_id() -> int:
    return random.getrandbits(64) or 1


def new_trace_id() -> int:
    return random.getrandbits(128) or 1


def context_of(trace_id: int, span_id: int, *, is_remote: bool = False) -> SpanContext:
    """The context of a sampled span."""
    return SpanContext(trace_id, span_id, is_remote, SAMPLED)


@cache
def _scope() -> InstrumentationScope:
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415  # slow, and only for exports

    return InstrumentationScope(*SCOPE)


def readable(span: RecordedSpan, resource: Resource) -> ReadableSpan:
    """Convert to a span of the SDK, for its processors and exporters."""
    from opentelemetry.sdk.trace import Event, ReadableSpan  # noqa: PLC0415  # slow, and only for exports

    parent = (
        None
        if span.parent_id is None
        else context_of(span.trace_id, span.parent_id, is_remote=True)
    )
    return ReadableSpan(
        span.name,
        context_of(span.trace_id, span.span_id),
        parent,
        resource,
        span.attributes,
        [Event(event.name, event.attributes, event.at) for event in span.events],
        [
            Link(context_of(trace_id, span_id, is_remote=True))
            for trace_id, span_id in span.links[:MOST]
        ],
        span.kind,
        status=Status(span.status, span.description),
        start_time=span.began,
        end_time=max(span.began, span.ended),
        instrumentation_scope=_scope(),
    )


def clean(value: object) -> Value | None:
    """A value that an attribute can have: text that can be encoded, a number, or several of one
    type. None for other values.
    """
    if isinstance(value, str):
        return printable(value, LONGEST)
    if isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        number = int(value)  # of an enumeration its number
        return number if -_LATEST <= number < _LATEST else None
    if not isinstance(value, (list, tuple)) or len({type(each) for each in value}) > 1:
        return None
    return [each for each in map(clean, value[:MOST]) if isinstance(each, (str, bool, int, float))]  # type: ignore[return-value]


def _cleaned(attributes: Attributes) -> dict[str, Value]:
    items = (
        (printable(str(key), 256), clean(value))
        for key, value in list((attributes or {}).items())[:MOST]
    )
    return {key: value for key, value in items if value is not None}


class RunSpan(Span):
    """The span of an attempt while it runs: the current span of its handler. No call on it can fail
    the job.
    """

    __slots__ = (
        "_attributes",
        "_began",
        "_context",
        "_description",
        "_events",
        "_is_over",
        "_links",
        "_name",
        "_parent_id",
        "_status",
        "_token",
    )

    def __init__(
        self, name: str, trace_id: int, parent_id: int, attributes: dict[str, Value]
    ) -> None:
        self._name = name
        self._context = context_of(trace_id, new_span_id())
        self._parent_id = parent_id
        self._attributes = attributes
        self._events: list[SpanEvent] = []
        self._links: list[tuple[int, int]] = []
        self._status = StatusCode.UNSET
        self._description: str | None = None
        self._began = time.time_ns()
        self._is_over = False

    def __enter__(self) -> Self:
        """Make it the current span. `__exit__` does not end it: the outcome of the attempt is known
        later.
        """
        self._token = attach(set_span_in_context(self))
        return self

    def __exit__(self, *_: object) -> None:
        detach(self._token)

    def get_span_context(self) -> SpanContext:
        return self._context

    def is_recording(self) -> bool:
        return not self._is_over

    @harmless
    def set_attribute(self, key: str, value: Value) -> None:
        """Set an attribute. Dropped when the value cannot be one, beyond the limit, or after the
        end.
        """
        name, cleaned = printable(str(key), 256), clean(value)
        if (
            cleaned is not None
            and not self._is_over
            and (name in self._attributes or len(self._attributes) < MOST)
        ):
            self._attributes[name] = cleaned

    @harmless
    def set_attributes(self, attributes: Mapping[str, Value]) -> None:
        for key, value in attributes.items():
            self.set_attribute(key, value)

    @harmless
    def add_event(
        self, name: str, attributes: Attributes = None, timestamp: int | None = None
    ) -> None:
        """Add an event. Dropped beyond the limit, or after the end."""
        if len(self._events) < MOST and not self._is_over:
            at = (
                timestamp
                if isinstance(timestamp, int) and 0 < timestamp < _LATEST
                else time.time_ns()
            )
            self._events.append(SpanEvent(printable(str(name), 256), at, _cleaned(attributes)))

    @harmless
    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:  # noqa: ARG002  # our links have none
        if context.is_valid and len(self._links) < MOST and not self._is_over:
            self._links.append((context.trace_id, context.span_id))

    @harmless
    def update_name(self, name: str) -> None:
        self._name = printable(str(name), 256)

    @harmless
    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Set the status, by the rules of the specification: OK is final, UNSET changes nothing."""
        code, text = (
            (status.status_code, status.description)
            if isinstance(status, Status)
            else (status, description)
        )
        if self._status is not StatusCode.OK and code is not StatusCode.UNSET:
            self._status = code
            self._description = (
                printable(hide(str(text)), 1024) if text and code is StatusCode.ERROR else None
            )

    @harmless
    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: FBT001, FBT002  # the interface of the SDK
    ) -> None:
        """Add an event with the type, the message and the stack."""
        described: dict[str, Value] = {
            "exception.type": type(exception).__qualname__,
            "exception.message": hide(str(exception)),
            "exception.stacktrace": hide("".join(traceback.format_exception(exception))),
            "exception.escaped": str(escaped),
        }
        self.add_event("exception", described | dict(attributes or {}), timestamp)

    def end(self, end_time: int | None = None) -> None:
        """Do nothing when a handler calls it: the span ends with the attempt."""

    def finish(self) -> RecordedSpan:
        """End the span now; the caller sends it."""
        self._is_over = True
        return RecordedSpan(
            self._name,
            SpanKind.CONSUMER,
            self._context.trace_id,
            self._context.span_id,
            self._parent_id,
            self._began,
            time.time_ns(),
            dict(self._attributes),
            list(self._events),
            list(self._links),
            self._status,
            self._description,
        )
