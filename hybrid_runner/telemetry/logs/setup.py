"""Sends log lines to stderr, each with the job that is being worked on and its trace."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from opentelemetry import trace

from hybrid_runner.secrets import hide
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import trace_id_of
from hybrid_runner.telemetry.logs.lines import ConsoleLines, JsonLines, Lines
from hybrid_runner.telemetry.tracing.current import current_claim

log = logging.getLogger("hybrid_runner")


@dataclass(frozen=True, slots=True)
class Logs:
    """What a child process needs to log as its parent does."""

    level: str
    layout: str


def configure_logs(level: str, layout: str) -> None:
    """Send this process's log lines to stderr."""
    logs = Logs(level, layout)
    root = logging.getLogger()
    root.handlers[:] = [_Stderr(logs)]
    root.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    log.setLevel(level.upper())
    # What Python prints by itself has another format, and may hold a password.
    logging.captureWarnings(capture=True)
    threading.excepthook = _on_thread_ended
    sys.unraisablehook = _on_unraisable


@contextlib.contextmanager
def logs_of_import(level: str | None, layout: str) -> Iterator[None]:
    """Write the log lines of an application while it is imported, without touching the root logger.
    What the application sets up stays. A level is set only if one is given.

    With a handler there the application's own `logging.basicConfig()` would do nothing. If the
    import fails, our own logs report it.
    """
    logs = Logs(level or "info", layout)
    handler, last_resort = _Stderr(logs), logging.lastResort
    logging.lastResort = handler
    if level is not None:
        log.setLevel(level.upper())
    try:
        with _warnings_logged():
            yield
    except BaseException:
        configure_logs(logs.level, layout)
        raise
    finally:
        if logging.lastResort is handler:
            logging.lastResort = last_resort


@contextlib.contextmanager
def _warnings_logged() -> Iterator[None]:
    """`logging.captureWarnings` would do, but could not be told from the application's own call."""
    before, over = warnings.showwarning, False

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if over or file is not None:
            before(message, category, filename, lineno, file, line)
        else:
            text = warnings.formatwarning(message, category, filename, lineno, line)
            logging.getLogger("py.warnings").warning("%s", text)

    warnings.showwarning = show
    try:
        yield
    finally:
        over = True  # captureWarnings(False) puts back what it found: perhaps this function
        if warnings.showwarning is show:
            warnings.showwarning = before


def use_logs_of_application(level: str | None) -> None:
    """Leave handlers, formats and all other loggers to the application. Our records come to its
    handlers without secrets, from a level on if one is given.
    """
    if level is not None:
        log.setLevel(level.upper())
    log.handlers[:] = [each for each in log.handlers if not isinstance(each, _Hiding)]
    log.handlers.insert(0, _Hiding())  # before all others, here and above


def is_shown(level: str) -> bool:
    """Whether some handler takes our lines of that level."""
    number = logging.getLevelName(level.upper())
    return log.isEnabledFor(number) and any(each.level <= number for each in _takers())


def _takers() -> list[logging.Handler]:
    """The application's handlers to which our lines come."""
    logger: logging.Logger | None = log
    found: list[logging.Handler] = []
    while logger is not None:
        found += [each for each in logger.handlers if not isinstance(each, _Hiding)]
        logger = logger.parent if logger.propagate else None
    last = logging.lastResort
    return found if found or last is None else [last]


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


class _Hiding(logging.Handler):
    """Hides secrets in a record before the application's handlers see it, and writes nothing."""

    _formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # what does not fit its arguments is left as it is
            record.msg, record.args = hide(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:  # what formatters print in place of the exception
            record.exc_text = hide(record.exc_text)
        last = logging.lastResort
        if (
            last is not None and last in _takers() and record.levelno >= last.level
        ):  # with a handler here, nobody asks it
            last.handle(record)


class _Stderr(logging.StreamHandler[TextIO]):
    def __init__(self, logs: Logs) -> None:
        super().__init__(sys.stderr)
        self.logs = logs
        self._lines: Lines
        self._lines = (
            JsonLines() if logs.layout == "json" else ConsoleLines(colours=sys.stderr.isatty())
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
