"""The layout of a log line: for a console, or as JSON. Passwords are taken out, the length is
bounded, and no content can make a line fail.
"""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime

import orjson

from hybrid_runner.display import harmless
from hybrid_runner.telemetry.logs.redaction import Redaction, shown, without_surrogates

IDS = ("job", "trace_id", "span_id")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", *IDS}
_COLOURS = {
    "DEBUG": "\x1b[2m",
    "INFO": "",
    "WARNING": "\x1b[33m",
    "ERROR": "\x1b[31m",
    "CRITICAL": "\x1b[31;1m",
}
_LONGEST_TRACEBACK = 65_536


class Lines(logging.Formatter, ABC):
    """The common part of both layouts."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

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
                f"{shown(record.msg)} (it does not fit its arguments: {shown(record.args, repr)})"
            )
        return self._redaction.clean(text)

    def _below(self, record: logging.LogRecord) -> dict[str, str]:
        """The traceback and the stack, if the record has them."""
        below = {}
        if record.exc_info:
            below["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            below["stack"] = self.formatStack(record.stack_info)
        return {
            name: self._redaction.clean(text, _LONGEST_TRACEBACK) for name, text in below.items()
        }


class JsonLines(Lines):
    """One JSON object per line."""

    def unwritten(self, record: logging.LogRecord, error: BaseException | None) -> str:
        return json.dumps(_head(record, time.time()) | {"message": _unwritten(record, error)})

    def _line(self, record: logging.LogRecord) -> str:
        fields = {name: value for name in IDS if (value := getattr(record, name, None)) is not None}
        fields |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        line = self._redaction.within(_head(record, record.created) | {"message": ""} | fields)
        cleaned = {"message": self._message(record)} | self._below(record)
        return orjson.dumps(
            line | {name: without_surrogates(text) for name, text in cleaned.items()}
        ).decode()


class ConsoleLines(Lines):
    """Time, level, ids and message; in colour on a terminal. What follows in further lines is
    indented.
    """

    def __init__(self, redaction: Redaction, *, colours: bool) -> None:
        super().__init__(redaction)
        self._colours = colours

    def unwritten(self, record: logging.LogRecord, error: BaseException | None) -> str:
        return f"{_clock(time.time())} {record.levelname.lower():7} {_unwritten(record, error)}"

    def _line(self, record: logging.LogRecord) -> str:
        ids = [
            f"{name.removesuffix('_id')} {value}"
            for name in IDS
            if (value := getattr(record, name, None)) is not None
        ]
        about = self._redaction.clean(f" [{' '.join(ids)}]") if ids else ""
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
