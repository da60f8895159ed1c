"""Spans on their way out: a bounded queue, and a thread that sends them without getting in the way of jobs."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

from hybrid_runner.telemetry.current import be_quiet
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.sending import Batch, Send, complain_of, way_to
from hybrid_runner.telemetry.spans import Recorded

if TYPE_CHECKING:
    from opentelemetry.context import Context

log = logging.getLogger("hybrid_runner.telemetry")

MOST = 16_384
"""Spans that wait at most; further ones are dropped and counted. OTEL_BSP_MAX_QUEUE_SIZE."""
BATCH = 512
"""OTEL_BSP_MAX_EXPORT_BATCH_SIZE."""
PAUSE = 1.0
"""Seconds that a span waits for company at most. OTEL_BSP_SCHEDULE_DELAY."""
SHARE = 0.3
"""Of the time of one core that turning spans into bytes may take: it holds the interpreter that jobs run in."""
LONGEST_PAUSE = 30.0
"""Seconds until the next try, after several that failed."""


class Outbox(SpanProcessor):
    """Takes spans from any thread. What cannot be sent costs a counter."""

    def __init__(self, exporters: Sequence[SpanExporter], environment: Mapping[str, str] = {}) -> None:
        self._exporters = exporters
        self._most = _positive(environment, "OTEL_BSP_MAX_QUEUE_SIZE", MOST)
        self._batch = min(self._most, _positive(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH))
        self._pause = _positive(environment, "OTEL_BSP_SCHEDULE_DELAY", round(PAUSE * 1000)) / 1000
        self._waiting: deque[Recorded | ReadableSpan] = deque()
        self._enough = threading.Event()
        self._closing = False
        self._hurried = False
        self._failures = 0
        self._ways: list[Send] = []
        self._made = 0
        self.sent = 0
        """Spans that the collector took."""
        self.dropped = 0
        """Spans that found no room, or that the collector did not take."""
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)

    def start(self, resource: Resource) -> None:
        """Send from now on; our own spans come from this resource."""
        self._ways = [way_to(exporter, resource) for exporter in self._exporters]
        self._thread.start()

    def add(self, span: Recorded | ReadableSpan) -> None:
        """Take one; never waits."""
        self._made += 1
        if len(self._waiting) >= self._most or self._closing:
            self.dropped += 1
            return
        self._waiting.append(span)
        if len(self._waiting) >= self._batch and not self._enough.is_set() and not self._failures:
            self._enough.set()

    # --- as a processor of the SDK: spans that instrumentations make

    def on_start(self, span: object, parent_context: Context | None = None) -> None:
        """Nothing to do yet."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take one of the SDK's."""
        if span.context is not None and span.context.trace_flags.sampled:
            self.add(span)

    def shutdown(self) -> None:
        """Send what is left, and end; as long as the exporters take."""
        self._closing = True
        self._enough.set()
        if self._thread.is_alive():
            self._thread.join()
        for exporter in self._exporters:
            exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until what is there now has been tried, without the pauses that leave room for jobs."""
        deadline = time.monotonic() + timeout_millis / 1000
        until = self._made
        self._hurried = True
        while self.sent + self.dropped < until and time.monotonic() < deadline and self._thread.is_alive():
            self._enough.set()
            time.sleep(0.01)
        self._hurried = False
        return self.sent + self.dropped >= until

    # --- the thread

    def _run(self) -> None:
        be_quiet()  # an instrumented HTTP client must not make spans of sending spans
        while not self._closing:
            self._enough.wait(self._rest())
            self._enough.clear()
            while self._waiting and self._send_some() and not self._closing:
                pass
        while self._waiting and self._send_some():
            pass
        self.dropped += len(self._waiting)
        self._waiting.clear()

    def _rest(self) -> float:
        return self._pause if not self._failures else min(LONGEST_PAUSE, self._pause * 2 ** min(self._failures, 10))

    def _send_some(self) -> bool:
        """One batch; False: the collector did not take all that can be sent."""
        began = time.thread_time()
        batch = [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
        taken, refused = len(batch), False
        for send in self._ways:
            by_one, goes_on = self._send(send, batch)
            taken, refused = min(taken, by_one), refused or not goes_on
        lost = len(batch) - taken
        self.sent += taken
        self.dropped += lost  # in one step: other threads count too
        self._failures = self._failures + 1 if refused else 0
        if not self._closing and not self._hurried:
            time.sleep((time.thread_time() - began) * (1 / SHARE - 1))
        return not refused

    def _send(self, send: Send, batch: Batch) -> tuple[int, bool]:
        """How many were taken, and whether more would be."""
        try:
            return (len(batch), True) if send(batch) else (0, False)
        except Exception as error:  # one of them cannot be sent: that is no reason to lose the others
            if len(batch) == 1:
                complain_of("a span", error)
                return 0, True
        half = len(batch) // 2
        taken, goes_on = self._send(send, batch[:half])
        if goes_on:
            more, goes_on = self._send(send, batch[half:])
            taken += more
        return taken, goes_on


class Origin(Resource):
    """A resource whose hash is computed once: the SDK's makes JSON of it, and exporters ask for it with each span."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.attributes, resource.schema_url)
        self._hash = super().__hash__()

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash


class Provider(TracerProvider):
    """The one that this package sets up: its own spans take a short way."""

    def __init__(self, resource: Resource, outbox: Outbox) -> None:
        resource = Origin(resource)
        super().__init__(resource=resource, shutdown_on_exit=False)  # at exit it would wait for half a minute
        self.outbox = outbox
        self.add_span_processor(outbox)
        outbox.start(resource)


def _positive(environment: Mapping[str, str], name: str, usual: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return usual
    if text.isdecimal() and int(text) > 0:
        return int(text)
    log.warning(
        "%s must be a positive whole number, not %r: %d is used", name, text, usual, extra=log_event("telemetry.setting_ignored")
    )
    return usual
