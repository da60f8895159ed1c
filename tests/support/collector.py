"""The smallest collector of traces: takes OTLP over HTTP and keeps the spans."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Self

import grpc
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Received(NamedTuple):
    """A span, and the process that sent it."""

    span: Span
    resource: dict[str, str]


class Collector:
    """Listens on a port of its own; `deaf` takes requests and never answers."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.spans: list[Received] = []
        self.endpoint = ""
        self._deaf = deaf
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.add_routes([web.post("/v1/traces", self._take)])
        self._runner = web.AppRunner(
            application, access_log=None, handle_signals=False, shutdown_timeout=1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.endpoint = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await request.read())
        if self._deaf:
            await self._over.wait()
        self.spans += received_in(message)
        return web.Response(
            body=ExportTraceServiceResponse().SerializeToString(),
            content_type="application/x-protobuf",
        )


class GrpcCollector:
    """A collector that is reached over gRPC."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.endpoint = ""
        self._server = grpc.aio.server()

    async def __aenter__(self) -> Self:
        export = grpc.unary_unary_rpc_method_handler(
            self._take,
            ExportTraceServiceRequest.FromString,
            ExportTraceServiceResponse.SerializeToString,
        )
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {"Export": export})]
        )
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(0.1)

    async def _take(
        self, message: ExportTraceServiceRequest, _context: object
    ) -> ExportTraceServiceResponse:
        self.spans += received_in(message)
        return ExportTraceServiceResponse()


def received_in(message: ExportTraceServiceRequest) -> list[Received]:
    """The spans of one request."""
    found = []
    for group in message.resource_spans:
        resource = {pair.key: pair.value.string_value for pair in group.resource.attributes}
        found += [Received(span, resource) for scope in group.scope_spans for span in scope.spans]
    return found
