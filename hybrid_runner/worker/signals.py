"""The signals that end a worker."""

from __future__ import annotations

import asyncio
import logging
import signal

from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner")


class EndAtOnce(SystemExit):
    """A second signal: the process ends without waiting for anything."""


def stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second one raises EndAtOnce."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            log.warning("second %s: ending at once", number.name, extra=log_event("worker.aborted"))
            raise EndAtOnce(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return stop
