"""Our own spans as bytes of OTLP. Takes a fifth of the time of making the SDK's objects, and leaves
no garbage.

Fields and their numbers are those of opentelemetry/proto/trace/v1/trace.proto; a test compares the
result with the SDK's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING

from hybrid_runner.telemetry.tracing.spans import MOST, SCOPE, RecordedSpan, SpanEvent, Value

if TYPE_CHECKING:
    from opentelemetry.trace import SpanKind

_ONE_BYTE = [bytes((number,)) for number in range(128)]
_64_BITS = 2**64 - 1
_fixed64 = Struct("<Q").pack
_times = Struct("<BQBQ").pack
_double = Struct("<d").pack

# Each begins with its tag: the field's number and how its length is encoded.
_IS_REMOTE_IS_KNOWN = b"\x85\x01\x00\x01\x00\x00"
_PARENT_IS_REMOTE = b"\x85\x01\x00\x03\x00\x00"
_LINK_IS_REMOTE = b"\x35\x00\x03\x00\x00"
_TRUE, _FALSE = b"\x10\x01", b"\x10\x00"


def encode(spans: Sequence[RecordedSpan], resource_bytes: bytes) -> bytes:
    """An ExportTraceServiceRequest. Two of them concatenated are one valid request, since protobuf
    merges repeated fields.

    `resource_bytes` is the part of a ResourceSpans beside its spans.
    """
    name, version = SCOPE
    scope = _part(b"\x0a", _text(b"\x0a", name) + _text(b"\x12", version))
    scope_spans = _part(b"\x12", scope + b"".join([_part(b"\x12", _span(span)) for span in spans]))
    return _part(b"\x0a", resource_bytes + scope_spans)


def _span(span: RecordedSpan) -> bytes:
    parent = b"" if span.parent_id is None else b"\x22\x08" + span.parent_id.to_bytes(8)
    parts = [
        b"\x0a\x10",
        span.trace_id.to_bytes(16),
        b"\x12\x08",
        span.span_id.to_bytes(8),
        parent,
        _name_and_kind(span.name, span.kind),
        _times(0x39, span.began, 0x41, max(span.began, span.ended)),
        _attributes(b"\x4a", span.attributes),
    ]
    parts += [_part(b"\x5a", _event(event)) for event in span.events]
    parts += [
        b"\x6a\x21\x0a\x10"
        + trace_id.to_bytes(16)
        + b"\x12\x08"
        + span_id.to_bytes(8)
        + _LINK_IS_REMOTE
        for trace_id, span_id in span.links[:MOST]
    ]
    code = span.status.value
    status = (_text(b"\x12", span.description) if span.description else b"") + (
        b"\x18" + _ONE_BYTE[code] if code else b""
    )
    parts += (
        _part(b"\x7a", status),
        _IS_REMOTE_IS_KNOWN if span.parent_id is None else _PARENT_IS_REMOTE,
    )
    return b"".join(parts)


def _event(event: SpanEvent) -> bytes:
    return (
        b"\x09"
        + _fixed64(event.at)
        + _text(b"\x12", event.name)
        + _attributes(b"\x1a", event.attributes)
    )


@lru_cache(1024)
def _name_and_kind(name: str, kind: SpanKind) -> bytes:
    return _text(b"\x2a", name) + b"\x30" + _ONE_BYTE[kind.value + 1]


def _attributes(tag: bytes, attributes: Mapping[str, Value]) -> bytes:
    return b"".join(
        [_part(tag, _key(key) + _part(b"\x12", _value(value))) for key, value in attributes.items()]
    )


@lru_cache(1024)
def _key(key: str) -> bytes:
    return _text(b"\x0a", key)


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return _text(b"\x0a", value)
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{value} does not fit into 64 bits")
        return b"\x18" + _varint(value & _64_BITS)
    if isinstance(value, float):
        return b"\x21" + _double(value)
    return _part(b"\x2a", b"".join([_part(b"\x0a", _value(each)) for each in value]))


def _text(tag: bytes, text: str) -> bytes:
    return _part(tag, text.encode())


def _part(tag: bytes, data: bytes) -> bytes:
    size = len(data)
    return tag + (_ONE_BYTE[size] if size < len(_ONE_BYTE) else _varint(size)) + data


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
