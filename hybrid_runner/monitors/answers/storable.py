"""What is left of a value from outside, so that Postgres can store it. Nothing here raises."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from hybrid_runner.jsontext import printable

NAME: Final = 200
TYPE: Final = 50
TEXT: Final = 1000
"""Characters of a description, an impact, an error message, and of the error of a poll."""
JSON: Final = 8192
"""Bytes of a contact, of details, and of an error."""
DEEPEST: Final = 30
"""Levels of these."""
WARNINGS: Final = 20
WARNING: Final = 300

INT4: Final = 2**31 - 1
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)


def text(value: str, most: int) -> str:
    """The text cut to so many characters, without NUL and lone surrogates."""
    if len(value) <= most and value.isprintable():  # most are
        return value
    return printable(value, most)


def optional_text(value: Any, most: int = TEXT) -> str | None:
    """None for what is no text, or an empty one."""
    if value is None:
        return None
    return text(value, most) if isinstance(value, str) and value else None


def one_line(value: str, most: int = TEXT) -> str:
    """The text as one line without control characters."""
    line = " ".join(printable(value, 4 * most).split())
    if not line.isprintable():
        line = "".join(each if each.isprintable() else "\ufffd" for each in line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shown(value: Any, most: int = 60) -> str:
    """A value from outside as a message quotes it: as JSON, shortened."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f'"{one_line(value, most)}"'
    try:
        return one_line(orjson.dumps(value).decode(), most)
    except (TypeError, ValueError):
        return one_line(str(value), most)


def whole(value: Any, default: int, low: int, high: int) -> int:
    """A number within bounds, rounded; the default for what is none."""
    if type(value) is int:
        return low if value < low else min(value, high)
    if not isinstance(value, float) or math.isnan(value):
        return default
    return round(max(low, min(high, value)))


def time_of(value: Any) -> datetime | None:
    """A time in ISO 8601, in UTC; None for anything else, and for times that nobody lives in."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        at = datetime.fromisoformat(value)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if _EARLIEST <= at <= _LATEST else None


def json_value(value: Any, deepest: int = DEEPEST) -> Any:
    """The value as jsonb can hold it: texts without NUL, not too deep, finite numbers."""
    if isinstance(value, str):
        return text(value, JSON)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        if not deepest:
            return "…"
        return {text(str(k), NAME): json_value(v, deepest - 1) for k, v in value.items()}
    if isinstance(value, list):
        return [json_value(each, deepest - 1) for each in value] if deepest else "…"
    return value


def small_object(value: Any) -> dict[str, Any] | None:
    """The object if it is one and not too large."""
    if not isinstance(value, dict):
        return None
    kept: dict[str, Any] = value if _fits(value) else json_value(value)
    return kept if kept is value or len(orjson.dumps(kept)) <= JSON else None


def small_json(value: Any) -> Any:
    """The value, or the beginning of its JSON text when it is too large."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value, TEXT)
    if _fits(value):
        return value
    kept = orjson.dumps(json_value(value))
    if len(kept) <= JSON:
        return orjson.loads(kept)
    return text(kept[: 4 * TEXT].decode("utf-8", "replace"), TEXT)


def _fits(value: Any) -> bool:
    """It can be stored as it is: told by its JSON text, without looking at each part."""
    try:
        written = orjson.dumps(value)
    except (TypeError, ValueError):  # nested too deeply
        return False
    return (
        len(written) <= JSON
        and b"\\u0000" not in written
        and written.count(b"{") + written.count(b"[") <= DEEPEST
    )


class Warnings:
    """Reasons, each once, in the order in which they came up; of one answer only."""

    def __init__(self) -> None:
        self._reasons: dict[str, None] = {}
        self._others = False

    def add(self, reason: str) -> None:
        line = one_line(reason, WARNING)
        if line in self._reasons:
            return
        if len(self._reasons) < WARNINGS - 1:
            self._reasons[line] = None
        else:
            self._others = True

    def told(self) -> tuple[str, ...]:
        others = ("and others",) if self._others else ()
        return (*self._reasons, *others)
