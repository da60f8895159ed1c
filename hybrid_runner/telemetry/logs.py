"""Log lines: one logger tree, console or JSON; each carries the job that is being worked on and its trace, and no password."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

import orjson
from opentelemetry import trace

from hybrid_runner.telemetry.about import trace_id_of
from hybrid_runner.telemetry.current import current_claim
from hybrid_runner.telemetry.redaction import Redaction

_IDS = ("job", "trace_id", "span_id")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", *_IDS}
_COLOURS = {"DEBUG": "\x1b[2m", "INFO": "", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31;1m"}
_DSN_VARIABLES = ("HYBRID_RUNNER_DSN", "HYBRID_RUNNER_LISTEN_DSN")


def configure_logs(level: str, layout: str, dsns: Iterable[str | None] = ()) -> None:
    """Send this process's log lines to stderr; passwords of these DSNs, and of those in the environment, are taken out."""
    redaction = Redaction([*dsns, *map(os.environ.get, _DSN_VARIABLES)], [os.environ.get("PGPASSWORD")])
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(add_ids)
    handler.setFormatter(JsonLines(redaction) if layout == "json" else ConsoleLines(redaction, colours=sys.stderr.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    logging.getLogger("hybrid_runner").setLevel(level.upper())


def add_ids(record: logging.LogRecord) -> bool:
    """The job, the trace and the span in which the line is written; what the line says itself counts more."""
    fields, claim = vars(record), current_claim.get()
    if "job" not in fields:
        record.job = None if claim is None else claim.id
    if "trace_id" not in fields:
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            record.trace_id, record.span_id = format(context.trace_id, "032x"), format(context.span_id, "016x")
        elif claim is not None and record.job == claim.id:  # type: ignore[attr-defined]  # set above
            record.trace_id = trace_id_of(claim)
    return True


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in _IDS if (value := getattr(record, name, None)) is not None}
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        redaction = self._redaction
        return orjson.dumps(redaction.within(line), default=lambda value: redaction.clean(str(value))).decode()


class ConsoleLines(logging.Formatter):
    """Time, level, ids, message; in colour on a terminal."""

    def __init__(self, redaction: Redaction, *, colours: bool) -> None:
        super().__init__()
        self._redaction = redaction
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, its traceback below."""
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        ids = [f"{name.removesuffix('_id')} {value}" for name in _IDS if (value := getattr(record, name, None)) is not None]
        about = f" [{' '.join(ids)}]" if ids else ""
        line = f"{at} {record.levelname.lower():7}{about} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        line = self._redaction.clean(line)
        colour = _COLOURS.get(record.levelname, "") if self._colours else ""
        return f"{colour}{line}\x1b[0m" if colour else line
