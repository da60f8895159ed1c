"""The queue of finished spans, and the thread that sends them without slowing down jobs."""

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

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.tracing.current import suppress_instrumentation
from hybrid_runner.telemetry.tracing.delivery import Batch, Send, log_failure, sender_for
from hybrid_runner.telemetry.tracing.spans import RecordedSpan

if TYPE_CHECKING:
    from opentelemetry.context import Context

log = logging.getLogger("hybrid_runner.telemetry")

MAX_QUEUE_SIZE = 16_384
"""Spans that may wait; further ones are dropped and counted. OTEL_BSP_MAX_QUEUE_SIZE."""
MAX_BATCH_SIZE = 512
"""Spans of one request. OTEL_BSP_MAX_EXPORT_BATCH_SIZE."""
PAUSE = 1.0
"""Seconds between two batches that are not full. OTEL_BSP_SCHEDULE_DELAY."""
SHARE = 0.3
"""Share of one core that encoding spans may take: meanwhile it keeps the interpreter from running
jobs.
"""
LONGEST_PAUSE = 30.0
"""Longest pause, in seconds, after batches that could not be sent."""


class SpanQueue(SpanProcessor):
    """Takes spans from any thread and never waits; spans that cannot be sent are counted."""

    def __init__(
        self, exporters: Sequence[SpanExporter], environment: Mapping[str, str] = {}
    ) -> None:
        self._exporters = exporters
        self._max_size = _positive(environment, "OTEL_BSP_MAX_QUEUE_SIZE", MAX_QUEUE_SIZE)
        self._batch_size = min(
            self._max_size,
            _positive(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", MAX_BATCH_SIZE),
        )
        self._pause = _positive(environment, "OTEL_BSP_SCHEDULE_DELAY", round(PAUSE * 1000)) / 1000
        self._waiting: deque[RecordedSpan | ReadableSpan] = deque()
        self._enough = threading.Event()
        self._closing = False
        self._hurried = False
        self._failures = 0
        self._senders: list[Send] = []
        self._added = 0
        self.sent = 0
        """Spans that all exporters took."""
        self.dropped = 0
        """Spans that found no room, or that an exporter did not take."""
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)

    def start(self, resource: Resource) -> None:
        """Start the thread; `resource` is that of our own spans."""
        self._senders = [sender_for(exporter, resource) for exporter in self._exporters]
        self._thread.start()

    def add(self, span: RecordedSpan | ReadableSpan) -> None:
        self._added += 1
        if len(self._waiting) >= self._max_size or self._closing:
            self.dropped += 1
            return
        self._waiting.append(span)
        if (
            len(self._waiting) >= self._batch_size
            and not self._enough.is_set()
            and not self._failures
        ):
            self._enough.set()

    # --- the SDK's SpanProcessor: takes the spans that instrumentation makes

    def on_start(self, span: object, parent_context: Context | None = None) -> None:
        """A span is added when it ends."""

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.add(span)

    def shutdown(self) -> None:
        """Send what is left, however long the exporters take, and end the thread."""
        self._closing = True
        self._enough.set()
        if self._thread.is_alive():
            self._thread.join()
        for exporter in self._exporters:
            exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until all spans of now have been sent or dropped, without pauses that leave time for
        jobs.
        """
        deadline = time.monotonic() + timeout_millis / 1000
        until = self._added
        self._hurried = True
        while (
            self.sent + self.dropped < until
            and time.monotonic() < deadline
            and self._thread.is_alive()
        ):
            self._enough.set()
            time.sleep(0.01)
        self._hurried = False
        return self.sent + self.dropped >= until

    # --- the thread

    def _run(self) -> None:
        suppress_instrumentation()  # no spans of an instrumented HTTP client about sending
        while not self._closing:
            self._enough.wait(self._next_pause())
            self._enough.clear()
            while self._waiting and self._send_some() and not self._closing:
                pass
        while self._waiting and self._send_some():
            pass
        self.dropped += len(self._waiting)
        self._waiting.clear()

    def _next_pause(self) -> float:
        return (
            self._pause
            if not self._failures
            else min(LONGEST_PAUSE, self._pause * 2 ** min(self._failures, 10))
        )

    def _send_some(self) -> bool:
        """Send one batch; False: an exporter did not take all that can be sent."""
        began = time.thread_time()
        batch = [self._waiting.popleft() for _ in range(min(self._batch_size, len(self._waiting)))]
        taken, refused = len(batch), False
        for send in self._senders:
            by_one, takes_more = self._send(send, batch)
            taken, refused = min(taken, by_one), refused or not takes_more
        lost = len(batch) - taken
        self.sent += taken
        self.dropped += lost  # as one addition: other threads add to it too
        self._failures = self._failures + 1 if refused else 0
        if not self._closing and not self._hurried:
            time.sleep((time.thread_time() - began) * (1 / SHARE - 1))
        return not refused

    def _send(self, send: Send, batch: Batch) -> tuple[int, bool]:
        """How many spans were taken, and whether the exporter would take more."""
        try:
            return (len(batch), True) if send(batch) else (0, False)
        except Exception as error:  # one span cannot be sent: halve the batch until it stands alone
            if len(batch) == 1:
                log_failure("a span", error)
                return 0, True
        half = len(batch) // 2
        taken, takes_more = self._send(send, batch[:half])
        if takes_more:
            more, takes_more = self._send(send, batch[half:])
            taken += more
        return taken, takes_more


class HashedResource(Resource):
    """A resource that keeps its hash. The SDK computes it from JSON, and exporters ask for it with
    every span.
    """

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.attributes, resource.schema_url)
        self._hash = super().__hash__()

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash


class Provider(TracerProvider):
    """The provider that this package sets up; our own spans go straight into its queue."""

    def __init__(self, resource: Resource, span_queue: SpanQueue) -> None:
        resource = HashedResource(resource)
        # Shutdown at exit would wait for half a minute.
        super().__init__(resource=resource, shutdown_on_exit=False)
        self.span_queue = span_queue
        self.add_span_processor(span_queue)
        span_queue.start(resource)


def _positive(environment: Mapping[str, str], name: str, usual: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return usual
    if text.isdecimal() and int(text) > 0:
        return int(text)
    log.warning(
        "%s must be a positive whole number, not %r: %d is used",
        name,
        text,
        usual,
        extra=log_event("telemetry.setting_ignored"),
    )
    return usual
