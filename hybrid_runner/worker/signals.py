"""The signals that end a worker."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading

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


def forget_signals_in_forks() -> None:
    """Give SIGTERM and SIGINT their usual meanings in forks of handlers, as multiprocessing makes
    them: a signal that is to end such a fork would do nothing to it, and reach the event loop of
    this process by the pipe that both have.
    """
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=_forget_signals
    )


_held = threading.local()


def _hold_signals() -> None:
    """One that reaches the fork before it has forgotten them would be lost."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _forget_signals() -> None:
    with contextlib.suppress(ValueError):
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _release_signals()
