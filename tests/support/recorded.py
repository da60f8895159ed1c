"""Spans that a test's own provider of the SDK received, as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from hybrid_runner.telemetry.tracing import publish_span


class RecordedSpans:
    """All spans so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> list[ReadableSpan]:
        """In the order of their ends."""
        return list(self._exporter.get_finished_spans())

    def names(self) -> list[str]:
        """Sorted."""
        return sorted(span.name for span in self.all)

    def named(self, name: str) -> list[ReadableSpan]:
        """By their beginnings."""
        return sorted(
            (span for span in self.all if span.name == name), key=lambda span: span.start_time or 0
        )

    def one(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        [span] = self.named(name)
        return span

    def children(self, of: ReadableSpan) -> list[str]:
        """The names of a span's children, by their beginnings."""
        found = [
            span
            for span in self.all
            if span.parent is not None and span.parent.span_id == ids(of)[1]
        ]
        return [
            span.name
            for span in sorted(found, key=lambda span: (span.start_time or 0, span.end_time or 0))
        ]


def ids(span: ReadableSpan) -> tuple[int, int]:
    """Of its trace and its own."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def attributes_of(of: ReadableSpan | Event) -> dict[str, Any]:
    """The attributes of a span or an event."""
    return dict(of.attributes or {})


def traces(spans: Iterable[ReadableSpan]) -> set[int]:
    """The ids of their traces."""
    return {ids(span)[0] for span in spans}


@contextmanager
def recording(
    monkeypatch: pytest.MonkeyPatch, sampler: Sampler | None = None
) -> Iterator[RecordedSpans]:
    """The application has set up OpenTelemetry itself."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with monkeypatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        patch.setattr(publish_span, "_tracer", provider.get_tracer("hybrid_runner"))
        yield RecordedSpans(exporter)
    provider.shutdown()
