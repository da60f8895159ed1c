"""The layout of a log line: for a console, or as JSON. Secrets are hidden, the length is bounded,
and no content can make a line fail.
"""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from itertools import count, islice
from typing import Any

import orjson

from hybrid_runner.display import harmless
from hybrid_runner.secrets import hide

IDS = ("job", "trace_id", "span_id")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", *IDS}
_COLOURS = {
    "DEBUG": "\x1b[2m",
    "INFO": "",
    "WARNING": "\x1b[33m",
    "ERROR": "\x1b[31m",
    "CRITICAL": "\x1b[31;1m",
}
_LONGEST_TEXT = 32_768
_LONGEST_TRACEBACK = 65_536
_DEEPEST = 8
_MOST_VALUES = 1000


class Lines(logging.Formatter, ABC):
    """The common part of both layouts."""

    def format(self, record: logging.LogRecord) -> str:
        try:
            return self._line(record)
        except Exception as error:  # the handler would print the record as it is
            return self.unwritten(record, error)

    @abstractmethod
    def unwritten(self, record: logging.LogRecord, error: BaseException | None) -> str:
        """A line in place of one that cannot be formatted; it holds no value of the record."""

    @abstractmethod
    def _line(self, record: logging.LogRecord) -> str: ...

    def _message(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except Exception:  # the handler of logging would print the arguments as they are
            text = (
                f"{_shown(record.msg)} (it does not fit its arguments: {_shown(record.args, repr)})"
            )
        return _clean(text)

    def _below(self, record: logging.LogRecord) -> dict[str, str]:
        """The traceback and the stack, if the record has them."""
        below = {}
        if record.exc_info:
            below["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            below["stack"] = self.formatStack(record.stack_info)
        return {name: _clean(text, _LONGEST_TRACEBACK) for name, text in below.items()}


class JsonLines(Lines):
    """One JSON object per line."""

    def unwritten(self, record: logging.LogRecord, error: BaseException | None) -> str:
        return json.dumps(_head(record, time.time()) | {"message": _unwritten(record, error)})

    def _line(self, record: logging.LogRecord) -> str:
        fields = {name: value for name in IDS if (value := getattr(record, name, None)) is not None}
        fields |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        line = _fields(_head(record, record.created) | {"message": ""} | fields, 0, count())
        cleaned = {"message": self._message(record)} | self._below(record)
        return orjson.dumps(
            line | {name: _without_surrogates(text) for name, text in cleaned.items()}
        ).decode()


class ConsoleLines(Lines):
    """Time, level, ids and message; in colour on a terminal. What follows in further lines is
    indented.
    """

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours

    def unwritten(self, record: logging.LogRecord, error: BaseException | None) -> str:
        return f"{_clock(time.time())} {record.levelname.lower():7} {_unwritten(record, error)}"

    def _line(self, record: logging.LogRecord) -> str:
        ids = [
            f"{name.removesuffix('_id')} {value}"
            for name in IDS
            if (value := getattr(record, name, None)) is not None
        ]
        about = _clean(f" [{' '.join(ids)}]") if ids else ""
        line = (
            f"{_clock(record.created)} {record.levelname.lower():7}{about} {self._message(record)}"
        )
        # Only a line that begins with a time is one of the log's own.
        line = harmless("\n".join([line, *self._below(record).values()])).replace("\n", "\n    ")
        colour = _COLOURS.get(record.levelname, "") if self._colours else ""
        return f"{colour}{line}\x1b[0m" if colour else line


def _head(record: logging.LogRecord, at: float) -> dict[str, object]:
    return {
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
        "level": record.levelname.lower(),
        "logger": record.name,
    }


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _unwritten(record: logging.LogRecord, error: BaseException | None) -> str:
    return (
        f"a line from {record.filename}:{record.lineno} cannot be written: {type(error).__name__}"
    )


def _clean(text: str, most: int = _LONGEST_TEXT) -> str:
    """Return the text without secrets; of one longer than `most`, its beginning and its end."""
    text = hide(text)
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}… ({len(text) - most:,} characters are left out) …{text[-half:]}"


def _fields(fields: Mapping[Any, object], depth: int, visited: Iterator[int]) -> dict[str, object]:
    return {
        _without_surrogates(_clean(_shown(name))): _field(value, depth + 1, visited)
        for name, value in islice(fields.items(), _MOST_VALUES)
    }


def _field(value: object, depth: int, visited: Iterator[int]) -> object:
    """Return the value as JSON can hold it, or else its text."""
    if depth > _DEEPEST or next(visited) > _MOST_VALUES:
        return "…"
    match value:
        case None | bool():
            return value
        case float():
            return float(value)
        case int() if -(2**63) <= value < 2**64:
            return int(value)
        case dict():
            return _fields(value, depth, visited)
        case list() | tuple():
            return [_field(inner, depth + 1, visited) for inner in islice(value, _MOST_VALUES)]
        case date() | time_of_day():
            return value.isoformat()
        case _:
            return _without_surrogates(_clean(value if isinstance(value, str) else _shown(value)))


def _shown(value: object, how: Callable[[object], str] = str) -> str:
    """Return the value as text, even if its own method fails."""
    try:
        return how(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _without_surrogates(text: str) -> str:
    """Return the text as JSON can hold it: without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
