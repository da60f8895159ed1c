"""How a row's key becomes the text that its jobs carry, and how the row is found by that text."""

from __future__ import annotations

import re

from hybrid_runner.attach.quoting import identifier
from hybrid_runner.model.sources import ColumnType

LONGEST = 1024
"""Bytes; rows with longer keys are not worked on."""
_ITS_TEXT = {"int2", "int4", "int8", "uuid", "text", "varchar", "bpchar"}
_AS_JSON = {*_ITS_TEXT, "bool", "date", "timestamp"}
"""Types whose JSON does not depend on a session's settings."""
_KNOWN = {*_AS_JSON, "timestamptz", "numeric", "bytea", "float4", "float8", "time", "oid", "inet"}
_SHORT = {*_KNOWN, "enum"} - {"text", "varchar", "bpchar", "numeric", "bytea"}
_SHORT_TEXT = re.compile(r".*\((\d{1,2}|1\d\d|2[0-4]\d)\)")
"""`character varying(36)`: at most four bytes for each character."""


def row_key(key: tuple[ColumnType, ...], alias: str) -> str:
    """The key of the row `alias`, as text."""
    if _is_its_text(key):
        return _of(key[0], alias) + "::text"
    parts = ", ".join(_part(column, alias) for column in key)
    return f"jsonb_build_array({parts})::text"


def has_key(key: tuple[ColumnType, ...], alias: str, keys: str) -> str:
    """Whether the row `alias` has one of these keys."""
    if _is_its_text(key):
        return f"{_of(key[0], alias)} = ANY ({keys}::{_cast(key[0])}[])"
    return (
        f"EXISTS (SELECT FROM unnest({keys}) AS k (row_key) WHERE"
        f" {is_row(key, alias, 'k.row_key')})"
    )


def is_row(key: tuple[ColumnType, ...], alias: str, text: str) -> str:
    """Whether the row `alias` is the one with this key."""
    if _is_its_text(key):
        return f"{_of(key[0], alias)} = {text}::{_cast(key[0])}"
    return " AND ".join(
        f"{_of(column, alias)} {_equals(column)} {_read(column, f'({text}::jsonb ->> {place})')}"
        for place, column in enumerate(key)
    )


def key_fits(key: tuple[ColumnType, ...], alias: str) -> str:
    """Whether a job can carry the key of the row `alias`."""
    tests = [f"{_of(column, alias)} IS NOT NULL" for column in key if not column.is_not_null]
    if not is_short(key):
        tests.append(f"octet_length({row_key(key, alias)}) <= {LONGEST}")
    return " AND ".join(tests) or "true"


def is_short(key: tuple[ColumnType, ...]) -> bool:
    """Whether no key can be longer than a job may carry."""
    texts = [column for column in key if column.base not in _SHORT]
    few = len(key) == 1 or (not texts and len(key) <= 8)
    return few and all(
        column.base in ("varchar", "bpchar") and _SHORT_TEXT.fullmatch(column.type)
        for column in texts
    )


def key_changed(key: tuple[ColumnType, ...]) -> str:
    """Whether an update gave the row another key; short, since each update asks."""
    return " OR ".join(
        f"{_compared(column, 'new')} IS DISTINCT FROM {_compared(column, 'old')}" for column in key
    )


def _is_its_text(key: tuple[ColumnType, ...]) -> bool:
    return len(key) == 1 and key[0].base in _ITS_TEXT


def _of(column: ColumnType, alias: str) -> str:
    return f"{alias}.{identifier(column.name)}"


def _compared(column: ColumnType, alias: str) -> str:
    if column.base in _KNOWN or column.base == "enum":
        return _of(column, alias)
    return _part(column, alias)


def _part(column: ColumnType, alias: str) -> str:
    """One column in the JSON array."""
    value = _of(column, alias)
    match column.base:
        case base if base in _AS_JSON:
            return value
        case "timestamptz":
            return f"{value} AT TIME ZONE 'UTC'"
        case "numeric":
            return f"trim_scale({value})"
        case "bytea":
            return f"encode({value}, 'hex')"
        case "citext":
            return f"lower({value}::text)"
        case _:
            return f"{value}::text"


def _read(column: ColumnType, text: str) -> str:
    """The value that `_part` has written."""
    match column.base:
        case "timestamptz":
            return f"{text}::timestamp AT TIME ZONE 'UTC'"
        case "bytea":
            return f"decode({text}, 'hex')"
        case _:
            return f"{text}::{_cast(column)}"


def _cast(column: ColumnType) -> str:
    """Without length: a longer text is not the key of a row that begins like it."""
    if column.base == "varchar":
        return "text"
    return column.base if column.base in _KNOWN else column.type


def _equals(column: ColumnType) -> str:
    """Types of extensions bring an operator of their own, in their schema; other `=` would miss
    their indexes.
    """
    schema, dot, name = column.type.rpartition(".")
    if dot and name.strip('"') == column.base and column.base not in _KNOWN:
        return f"OPERATOR({schema}.=)"
    return "="
