"""Sends log lines to stderr, each with the job that is being worked on and its trace, and without
passwords.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from opentelemetry import trace

from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import trace_id_of
from hybrid_runner.telemetry.logs.lines import ConsoleLines, JsonLines, Lines
from hybrid_runner.telemetry.logs.redaction import Redaction, header_values
from hybrid_runner.telemetry.tracing.current import current_claim

log = logging.getLogger("hybrid_runner")

_DSN_VARIABLES = ("HYBRID_RUNNER_DSN", "HYBRID_RUNNER_LISTEN_DSN")
_SECRET_VARIABLES = ("PGPASSWORD", "HYBRID_RUNNER_HTTP_TOKEN")
_HEADER_VARIABLES = (
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
)


@dataclass(frozen=True, slots=True)
class Logs:
    """What a child process needs to log as its parent does."""

    level: str
    layout: str
    dsns: tuple[str | None, ...] = field(default=(), repr=False)


def configure_logs(level: str, layout: str, dsns: Iterable[str | None] = ()) -> None:
    """Send this process's log lines to stderr; passwords of these DSNs and of those in the
    environment are taken out.
    """
    logs = Logs(level, layout, tuple(dsns))
    root = logging.getLogger()
    root.handlers[:] = [_Stderr(logs)]
    root.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    log.setLevel(level.upper())
    # What Python prints by itself has another format, and may hold a password.
    logging.captureWarnings(capture=True)
    threading.excepthook = _on_thread_ended
    sys.unraisablehook = _on_unraisable


@contextlib.contextmanager
def logs_of_import(level: str, layout: str, dsns: Iterable[str | None] = ()) -> Iterator[None]:
    """Write the log lines of an application while it is imported, without touching the root logger.

    With a handler there the application's own `logging.basicConfig()` would do nothing. If the
    import fails, our own logs report it.
    """
    logs = Logs(level, layout, tuple(dsns))
    handler, warnings, last_resort = (
        _Stderr(logs),
        logging.getLogger("py.warnings"),
        logging.lastResort,
    )
    logging.lastResort = handler
    log.setLevel(level.upper())
    warnings.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    except BaseException:
        configure_logs(level, layout, logs.dsns)
        raise
    finally:
        logging.lastResort = last_resort
        warnings.removeHandler(handler)
        if configured_logs() is None:
            logging.captureWarnings(capture=False)
            log.setLevel(logging.NOTSET)


def has_logs_of_its_own() -> bool:
    """Whether the application has set up logging."""
    return bool(logging.getLogger().handlers) and configured_logs() is None


def configured_logs() -> Logs | None:
    """The arguments of `configure_logs`; None: the application has logs of its own."""
    return next(
        (handler.logs for handler in logging.getLogger().handlers if isinstance(handler, _Stderr)),
        None,
    )


def is_watched() -> bool:
    """Whether info lines of this process go to a terminal, by the handler of `configure_logs`."""
    return log.isEnabledFor(logging.INFO) and any(
        isinstance(handler, _Stderr) and handler.level <= logging.INFO and handler.stream.isatty()
        for handler in logging.getLogger().handlers
    )


def add_ids(record: logging.LogRecord) -> bool:
    """Add the job, the trace and the span in which the line is written, unless it has its own."""
    fields, claim = vars(record), current_claim.get()
    if "job" not in fields:
        record.job = None if claim is None else claim.id
    if "trace_id" not in fields:
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            record.trace_id, record.span_id = (
                format(context.trace_id, "032x"),
                format(context.span_id, "016x"),
            )
        elif claim is not None and record.job == claim.id:  # type: ignore[attr-defined]  # set above
            record.trace_id = trace_id_of(claim)
    return True


class _Stderr(logging.StreamHandler[TextIO]):
    def __init__(self, logs: Logs) -> None:
        super().__init__(sys.stderr)
        self.logs = logs
        headers = (
            value for name in _HEADER_VARIABLES for value in header_values(os.environ.get(name, ""))
        )
        secrets = (*map(os.environ.get, _SECRET_VARIABLES), *headers)
        redaction = Redaction([*logs.dsns, *map(os.environ.get, _DSN_VARIABLES)], secrets)
        self._lines: Lines
        self._lines = (
            JsonLines(redaction)
            if logs.layout == "json"
            else ConsoleLines(redaction, colours=sys.stderr.isatty())
        )
        self.setFormatter(self._lines)
        self.addFilter(add_ids)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # of logging
        """Write a line without the record's arguments, which logging would print."""
        with contextlib.suppress(Exception):
            self.stream.write(self._lines.unwritten(record, sys.exception()) + self.terminator)
            self.flush()


def _on_thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is not SystemExit:
        name = "" if ended.thread is None else f" {ended.thread.name}"
        log.error(
            "the thread%s ended",
            name,
            exc_info=(ended.exc_type, ended.exc_value or ended.exc_type(), ended.exc_traceback),
            extra=log_event("process.thread_failed"),
        )


def _on_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    error = unraisable.exc_value or unraisable.exc_type()
    what = unraisable.err_msg or "an exception that nobody could catch"
    log.error(
        "%s",
        what,
        exc_info=(unraisable.exc_type, error, unraisable.exc_traceback),
        extra=log_event("process.unraisable"),
    )
