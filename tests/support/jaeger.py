"""A real Jaeger in memory, and its query API. The fixture `jaeger` is one for all tests: tell
traces apart by id.

Send OTLP to `jaeger.endpoint` (HTTP) or `jaeger.grpc_endpoint`, then `spans = await
jaeger.until(trace_id, lambda spans: len(spans) == 3)`.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.support import telemetry_programs
from tests.support.outside import answers, first_program, running
from tests.support.ports import free_ports
from tests.support.waiting import until

VARIABLE = "HYBRID_RUNNER_TEST_JAEGER"
CONFIGURATION = """
extensions:
  jaeger_storage:
    backends:
      memory:
        memory:
          max_traces: 100000
  jaeger_query:
    storage:
      traces: memory
    http:
      endpoint: 127.0.0.1:{query}
    grpc:
      endpoint: 127.0.0.1:0
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{http}
      grpc:
        endpoint: 127.0.0.1:{grpc}
exporters:
  jaeger_storage_exporter:
    trace_storage: memory
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [jaeger_storage_exporter]
  telemetry:
    metrics:
      level: none
"""


Attributes = dict[str, Any]
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES = ("unset", "ok", "error")


@dataclass(frozen=True)
class Span:
    """A span as OpenTelemetry means it; ids are lower-case hex, times nanoseconds."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str
    start: int
    end: int
    attributes: Attributes
    events: tuple[tuple[str, Attributes], ...]
    """(name, attributes) of each, in order."""
    links: tuple[tuple[str, str], ...]
    """(trace id, span id) of each."""
    status: str
    status_message: str
    resource: Attributes
    """Attributes of the process that sent it, `service.name` among them."""


@dataclass(frozen=True)
class Jaeger:
    """Where it listens, and questions to it."""

    endpoint: str
    grpc_endpoint: str
    query: str

    async def trace(self, trace_id: str) -> list[Span]:
        """All spans of that trace that have arrived, by start; none of an unknown one."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.query}/api/v3/traces/{trace_id}") as response,
        ):
            if response.status == 404:
                return []
            response.raise_for_status()
            return sorted(
                _spans(await response.json(content_type=None)), key=lambda span: span.start
            )

    async def until(self, trace_id: str, condition: Callable[[list[Span]], bool]) -> list[Span]:
        """The spans, once that is so of them."""
        return await until(lambda: self.trace(trace_id), condition)

    async def services(self) -> list[str]:
        """The service names it has heard of."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.query}/api/services") as response,
        ):
            return sorted((await response.json())["data"] or [])


def _spans(told: dict[str, Any]) -> list[Span]:
    return [
        _span(span, _values(sender["resource"]))
        for sender in told["result"]["resourceSpans"]
        for scope in sender["scopeSpans"]
        for span in scope["spans"]
    ]


def _span(told: dict[str, Any], resource: Attributes) -> Span:
    return Span(
        trace_id=told["traceId"],
        span_id=told["spanId"],
        parent_id=told.get("parentSpanId") or None,
        name=told["name"],
        kind=KINDS[told.get("kind", 0)],
        start=int(told["startTimeUnixNano"]),
        end=int(told["endTimeUnixNano"]),
        attributes=_values(told),
        events=tuple((event["name"], _values(event)) for event in told.get("events", ())),
        links=tuple((link["traceId"], link["spanId"]) for link in told.get("links", ())),
        status=STATUSES[told["status"].get("code", 0)],
        status_message=told["status"].get("message", ""),
        resource=resource,
    )


def _values(told: dict[str, Any]) -> Attributes:
    return {pair["key"]: _value(pair["value"]) for pair in told.get("attributes", ())}


def _value(told: dict[str, Any]) -> Any:
    [(kind, value)] = told.items()
    match kind:
        case "intValue":
            return int(value)
        case "arrayValue":
            return [_value(each) for each in value.get("values", ())]
        case _:
            return value


def find() -> str | None:
    """The program: the one named, else what tools/fetch compiled."""
    return first_program(os.environ.get(VARIABLE), telemetry_programs.folder() / "jaeger")


def why_absent() -> str:
    """One line for a person."""
    return f"there is no Jaeger: tools/fetch/telemetry compiles it, or {VARIABLE} names one"


@contextmanager
def started() -> Iterator[Jaeger]:
    """Another one, for a test that stops it or fills it."""
    program = find()
    assert program is not None
    http, grpc, query = free_ports(3)
    page = f"http://127.0.0.1:{query}"
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-jaeger-") as folder:
        configuration = Path(folder) / "jaeger.yaml"
        configuration.write_text(CONFIGURATION.format(http=http, grpc=grpc, query=query))
        command = [program, "--config", str(configuration)]
        # Asked politely it takes ten seconds, and what it holds nobody needs.
        with running(command, lambda: answers(f"{page}/api/services"), ending=signal.SIGKILL):
            yield Jaeger(f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}", page)
