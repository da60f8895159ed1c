"""JSON that Postgres can store: limited in size, and without what jsonb cannot hold."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

LARGEST = 1024 * 1024
"""Bytes of one payload, result or memory; the CHECK constraint of payloads has the same limit."""

# A backslash escape of NUL that is not itself escaped.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class NotStorable(ValueError):
    """The value cannot be stored; `str()` says why."""


def encode(value: Any, what: str) -> str:
    """JSON text of `value`; NotStorable names `what` and the reason."""
    try:
        text = orjson.dumps(value, default=_other, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(f"{what} cannot be written as JSON: {error}") from None
    refuse_nan(value, text, what)
    return check(text, what)


def refuse_nan(value: Any, text: bytes, what: str) -> None:
    """NotStorable when plain containers hold NaN or infinity, which became null in the text."""
    if b"null" in text and _holds_no_number(value):
        raise NotStorable(
            f"{what} contains NaN or infinity, which JSON cannot hold: use None or a string"
        )


def check(text: bytes, what: str) -> str:
    """The JSON text as `str`; NotStorable when Postgres would refuse it."""
    if len(text) > LARGEST:
        raise NotStorable(
            f"{what} has {len(text):,} bytes of JSON, the most is {LARGEST:,}: store it elsewhere"
            " and keep a reference"
        )
    if b"\\u0000" in text and _NUL.search(text):
        raise NotStorable(
            f"{what} contains a NUL character, which Postgres cannot store in JSON: remove or"
            " escape it"
        )
    return text.decode()


def decode(text: str | None) -> Any:
    """The value of a JSON text from Postgres; None stays None.

    Others may have written by SQL what no parser here can read: that stays text.
    """
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # a number beyond a double, or nested deeper than it goes
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


def printable(text: str, most: int = 4096) -> str:
    """The text without what Postgres cannot store (NUL, lone surrogates), and shortened."""
    return text[:most].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _holds_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_holds_no_number, value.values()))
    return isinstance(value, (list, tuple, set, frozenset)) and any(map(_holds_no_number, value))


def _other(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)  # pydantic models inside plain containers
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"Type is not JSON serializable: {type(value).__name__}")
