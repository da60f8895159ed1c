"""What of a value would arrive as something else, once it has been written as JSON and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from hybrid_runner.jsontext import holds_secret


def difference(sent: Any, got: Any, *, holds_any: bool, where: str = "") -> str | None:
    """Which part differs and how, without its value; None when nothing does. With `holds_any`,
    parts may arrive as what JSON makes of them.
    """
    if _is_equal(sent, got):
        return None
    found = _within(sent, got, holds_any=holds_any, where=where)
    if found is None or not (holds_any and _is_json_of(sent, got)):
        return found
    return _said(where, "a secret would arrive as asterisks") if holds_secret(sent) else None


def _is_equal(sent: Any, got: Any) -> bool:
    try:
        return bool(sent == got)
    except Exception:  # arrays and the like
        return False


def _within(sent: Any, got: Any, *, holds_any: bool, where: str) -> str | None:
    if type(sent) is not type(got):
        if isinstance(sent, float) and not math.isfinite(sent):
            return _said(where, "JSON cannot hold NaN and infinity: use None or a string")
        said = f"{_name(sent)} would arrive as {_name(got)}"
        return _said(where, f"{said}: annotate it so that its JSON can only be read as it is")
    match sent:
        case float() if sent != sent and got != got:  # noqa: PLR0124  # NaN is not itself
            return None
        case datetime() if sent.tzinfo and got.tzinfo:
            # In the hour that a change of the clocks repeats, times of two zones are never equal.
            if sent.astimezone(UTC) == got.astimezone(UTC):
                return None
        case BaseModel() | Mapping():
            return _of_parts(_parts(sent), _parts(got), holds_any=holds_any, where=where)
        case list() | tuple() if len(sent) == len(got):
            return _of_parts(
                dict(enumerate(sent)), dict(enumerate(got)), holds_any=holds_any, where=where
            )
        case _ if is_dataclass(sent):
            return _of_parts(_parts(sent), _parts(got), holds_any=holds_any, where=where)
        case _ if getattr(type(sent), "__eq__", None) is getattr(object, "__eq__", None):
            return None  # no two of them are equal
    return _said(
        where,
        "it would arrive as another value: is it excluded, or changed by a serializer or a"
        " validator?",
    )


def _of_parts(
    sent: Mapping[Any, Any], got: Mapping[Any, Any], *, holds_any: bool, where: str
) -> str | None:
    for name, part in sent.items():
        below = f"{where}.{name}" if where else str(name)
        if name not in got:
            return _said(below, "it would not arrive")
        if found := difference(part, got[name], holds_any=holds_any, where=below):
            return found
    more = [name for name in got if name not in sent]
    return _said(where, f"{more[0]} would be added") if more else None


def _parts(value: Any) -> Mapping[Any, Any]:
    """Private attributes and cached properties are no part of a model."""
    if isinstance(value, BaseModel):
        own = vars(value)
        named = {name: own[name] for name in type(value).model_fields if name in own}
        return named | (value.model_extra or {})
    if isinstance(value, Mapping):
        return value
    return {each.name: getattr(value, each.name, None) for each in fields(value)}


def _is_json_of(sent: Any, got: Any) -> bool:
    if type(got) not in (str, int, float, bool, type(None), list, dict):
        return False
    try:
        return any(
            _is_equal(to_jsonable_python(sent, by_alias=by_alias, round_trip=True), got)
            for by_alias in (True, False)
        )
    except Exception:  # whatever cannot be written
        return False


def _said(where: str, what: str) -> str:
    return f"{where}: {what}" if where else what


def _name(value: object) -> str:
    return "null" if value is None else type(value).__name__
