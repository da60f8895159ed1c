"""The standard OTEL_* variables about where spans and metrics go."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from hybrid_runner.telemetry.log_events import log_event

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger("hybrid_runner.telemetry")

SERVICE_NAME = "hybrid-runner"
NO_GRPC = (
    "OTEL_EXPORTER_OTLP_PROTOCOL=grpc needs an extra: pip install 'hybrid-runner[grpc]', or use"
    " http/protobuf"
)

SHARED_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.common._internal",
)
"""Loggers of the SDK that repeat themselves about spans and about metrics."""

Signal = Literal["TRACES", "METRICS"]
_PROTOCOLS = ("http/protobuf", "grpc")


def value(environment: Mapping[str, str], name: str) -> str:
    """The value of a variable in lower case; '' if it is not set."""
    return environment.get(name, "").strip().lower()


def of_signal(environment: Mapping[str, str], signal: Signal, name: str) -> str:
    """OTEL_EXPORTER_OTLP_{signal}_{name}, or else OTEL_EXPORTER_OTLP_{name}."""
    return value(environment, f"OTEL_EXPORTER_OTLP_{signal}_{name}") or value(
        environment, f"OTEL_EXPORTER_OTLP_{name}"
    )


def exporters(
    environment: Mapping[str, str], signal: Signal, known: tuple[str, ...]
) -> tuple[str, ...]:
    """The exporters of `known` that OTEL_{signal}_EXPORTER names; `otlp` if only an endpoint is
    set. Unknown names are a warning.
    """
    if value(environment, "OTEL_SDK_DISABLED") == "true":
        return ()
    variable = f"OTEL_{signal}_EXPORTER"
    named = {name.strip() for name in value(environment, variable).split(",")} - {""}
    if unknown := named - {*known, "none"}:
        log.warning(
            "%s: %s is not here, only %s and none",
            variable,
            ", ".join(sorted(unknown)),
            ", ".join(known),
            extra=log_event("telemetry.setting_ignored"),
        )
    if not named and of_signal(environment, signal, "ENDPOINT"):
        named = {"otlp"}
    return () if "none" in named else tuple(name for name in known if name in named)


def protocol(environment: Mapping[str, str], signal: Signal) -> str:
    """`http/protobuf` or `grpc`; ValueError for another."""
    named = of_signal(environment, signal, "PROTOCOL") or _PROTOCOLS[0]
    if named not in _PROTOCOLS:
        raise ValueError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={named} is not here, only http/protobuf (port 4318) and"
            " grpc (4317)"
        )
    return named


def resource(worker_id: str) -> Resource:
    """The service, the worker, and what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415  # slow

    ours = {"service.name": SERVICE_NAME, "service.instance.id": worker_id}
    return Resource.create(ours | dict(OTELResourceDetector().detect().attributes))
