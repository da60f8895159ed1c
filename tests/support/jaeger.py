"""A real Jaeger in memory, on ports of its own, and its query API. The fixture `jaeger` is one for the whole session: tell traces apart by id.

Send OTLP to `jaeger.endpoint` (HTTP) or `jaeger.grpc_endpoint`, then `await jaeger.until(trace_id, lambda spans: len(spans) == 3)`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.support import telemetry_programs
from tests.support.outside import answers, first_program, free_ports, running

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


@dataclass(frozen=True)
class Span:
    """A span as Jaeger tells it; ids are lower-case hex, times microseconds."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    service: str
    start: int
    duration: int
    tags: dict[str, Any]
    """Attributes, and what Jaeger makes of kind and status: `span.kind`, `otel.status_code`, `error`."""
    links: tuple[tuple[str, str], ...]
    """(trace id, span id) of each."""
    events: tuple[tuple[str, dict[str, Any]], ...]
    """(name, attributes) of each, in order."""
    process: dict[str, Any]
    """Attributes of the resource, without service.name."""


@dataclass(frozen=True)
class Jaeger:
    """Where it listens, and questions to it."""

    endpoint: str
    grpc_endpoint: str
    query: str

    async def trace(self, trace_id: str) -> list[Span]:
        """All spans of that trace that have arrived, by start; none of an unknown one."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.query}/api/traces/{trace_id}") as response:
            if response.status == 404:
                return []
            response.raise_for_status()
            [trace] = (await response.json())["data"]
        return sorted((_span(told, trace["processes"]) for told in trace["spans"]), key=lambda span: span.start)

    async def until(self, trace_id: str, condition: Callable[[list[Span]], bool]) -> list[Span]:
        """The spans, once that is so of them; the test's time-out bounds it."""
        while not condition(spans := await self.trace(trace_id)):
            await asyncio.sleep(0.05)
        return spans

    async def services(self) -> list[str]:
        """The service names it has heard of."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.query}/api/services") as response:
            return sorted((await response.json())["data"] or [])


def _span(told: dict[str, Any], processes: dict[str, Any]) -> Span:
    references = [(each["refType"], each["traceID"], each["spanID"]) for each in told["references"]]
    parents = [span for kind, trace, span in references if kind == "CHILD_OF" and trace == told["traceID"]]
    process = processes[told["processID"]]
    return Span(
        trace_id=told["traceID"],
        span_id=told["spanID"],
        parent_id=parents[0] if parents else None,
        name=told["operationName"],
        service=process["serviceName"],
        start=told["startTime"],
        duration=told["duration"],
        tags=_values(told["tags"]),
        links=tuple((trace, span) for _, trace, span in references if span not in parents[:1]),
        events=tuple(_event(_values(log["fields"])) for log in sorted(told["logs"] or [], key=lambda log: log["timestamp"])),
        process=_values(process.get("tags") or []),
    )


def _values(tags: list[dict[str, Any]]) -> dict[str, Any]:
    return {tag["key"]: tag["value"] for tag in tags}


def _event(fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return fields.pop("event", ""), fields


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
        with running([program, "--config", str(configuration)], lambda: answers(f"{page}/api/services")):
            yield Jaeger(f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}", page)
