"""Log lines: one logger tree, console or JSON, and the id of the job that is being worked on in every line about it."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

import orjson

current_job: ContextVar[int | None] = ContextVar("hybrid_runner_job", default=None)
"""The job whose handler is running in this context; lines that it logs carry the id."""

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "job", "taskName"}
_COLOURS = {"DEBUG": "\x1b[2m", "INFO": "", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31;1m"}


def configure_logs(level: str, layout: str) -> None:
    """Send this process's log lines to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_add_job)
    handler.setFormatter(JsonLines() if layout == "json" else ConsoleLines(colours=sys.stderr.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    logging.getLogger("hybrid_runner").setLevel(level.upper())


def _add_job(record: logging.LogRecord) -> bool:
    if not hasattr(record, "job"):
        record.job = current_job.get()
    return True


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (job := getattr(record, "job", None)) is not None:
            line["job"] = job
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class ConsoleLines(logging.Formatter):
    """Time, level, job, message; in colour on a terminal."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, its traceback below."""
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        job = getattr(record, "job", None)
        about = "" if job is None else f" [job {job}]"
        line = f"{at} {record.levelname.lower():7}{about} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        colour = _COLOURS.get(record.levelname, "") if self._colours else ""
        return f"{colour}{line}\x1b[0m" if colour else line
