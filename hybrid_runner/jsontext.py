"""JSON that Postgres can store: limited in size, and without what jsonb cannot hold."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import orjson
from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic_core import from_json, to_json

LARGEST = 1024 * 1024
"""Bytes of one payload, result or memory; the CHECK constraint of payloads has the same limit."""

# A backslash escape of NUL that is not itself escaped.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class NotStorable(ValueError):
    """The value cannot be stored; `str()` says why."""


def encode(value: Any, what: str, most: int = LARGEST) -> str:
    """JSON text of `value`; NotStorable names `what` and the reason."""
    try:
        text = _dumped(value)
    except (TypeError, ValueError, RecursionError) as error:
        why = error.__cause__ if isinstance(error.__cause__, NotStorable) else error
        raise NotStorable(f"{what} cannot be written as JSON: {why}") from None
    # NaN and infinity were written as null.
    if b"null" in text and (where := find_no_number(value)) is not None:
        raise no_number(what, where)
    return check(text, what, most)


def no_number(what: str, where: str) -> NotStorable:
    """NaN or infinity at this place of the value."""
    place = f" ({where})" if where else ""
    return NotStorable(
        f"{what} contains NaN or infinity{place}, which JSON cannot hold: use None or a string"
    )


def check(text: bytes, what: str, most: int = LARGEST) -> str:
    """The JSON text as `str`; NotStorable when Postgres would refuse it."""
    if len(text) > most:
        raise NotStorable(
            f"{what} has {len(text):,} bytes of JSON, the most is {most:,}: store it elsewhere"
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
        return read(text)
    except (ValueError, RecursionError):
        return text


def read(text: str) -> Any:
    """The value of a JSON text; ValueError when no parser here can read it."""
    try:
        return from_json(text)  # whole numbers of any size: orjson would round them
    except ValueError:  # nested deeper than it goes
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:  # that, and a number beyond a double
            return json.loads(text)


def printable(text: str, most: int = 4096) -> str:
    """The text without what Postgres cannot store (NUL, lone surrogates), and shortened."""
    return text[:most].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def find_no_number(value: Any) -> str | None:
    """Where in the value NaN or infinity is, empty for the value itself; None when nowhere."""
    return _find(value, lambda part: isinstance(part, float) and not math.isfinite(part))


def find_no_text(value: Any) -> str | None:
    """Where in the value a lone surrogate is, or bytes that are no text; None when nowhere."""
    return _find(value, _is_no_text)


def _is_no_text(part: Any) -> bool:
    try:
        _ = part.encode() if isinstance(part, str) else isinstance(part, bytes) and part.decode()
    except UnicodeError:
        return True
    return False


def _find(value: Any, is_found: Callable[[Any], bool], where: str = "") -> str | None:
    if is_found(value):
        return where
    for name, part in _parts(value):
        found = _find(part, is_found, f"{where}.{name}" if where else str(name))
        if found is not None:
            return found
    return None


def holds_secret(value: Any) -> bool:
    """Whether there is a secret of pydantic's in it, which is written as asterisks."""
    if isinstance(value, (SecretStr, SecretBytes, Secret)):
        return True
    if isinstance(value, BaseModel):
        return any(map(holds_secret, (*vars(value).values(), *(value.model_extra or {}).values())))
    return any(holds_secret(part) for _, part in _parts(value))


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=_other, option=orjson.OPT_NON_STR_KEYS)
    except TypeError as error:
        if "64-bit" not in str(
            error
        ):  # its limit for whole numbers, and neither Postgres's nor ours
            raise
    if holds_secret(value):
        raise NotStorable("a secret would be written as asterisks: use str")
    text = to_json(value, by_alias=True, round_trip=True, inf_nan_mode="null")
    try:
        from_json(text)
    except ValueError:
        raise NotStorable("it holds a whole number of too many digits: write it as text") from None
    return text


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (list, tuple, set, frozenset)):
        return enumerate(value)
    if isinstance(value, BaseModel):  # as its own serializers write it, NaN left as it is
        try:
            dumped: Any = value.model_dump(mode="json", warnings=False)
        except ValueError:  # it cannot be written, which is what is being looked into
            dumped = vars(value)
        return dumped.items() if isinstance(dumped, dict) else [("", dumped)]
    if is_dataclass(value) and not isinstance(value, type):
        return [(each.name, getattr(value, each.name, None)) for each in fields(value)]
    return ()


def _other(value: Any) -> Any:
    if isinstance(value, BaseModel):  # in plain containers
        if holds_secret(value):
            raise NotStorable(
                f"a secret in {type(value).__name__} would be written as asterisks: use str"
            )
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"Type is not JSON serializable: {type(value).__name__}")
