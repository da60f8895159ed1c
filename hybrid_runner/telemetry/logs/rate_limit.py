"""Limits loggers that repeat themselves to one line a minute."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import ClassVar

_LONGEST = 300
_PAUSE = 60.0


class RateLimitedLog(logging.Filter):
    """Lets one line a minute through, shortened, with the number of lines held back since."""

    _of_purpose: ClassVar[dict[str, RateLimitedLog]] = {}

    @classmethod
    def on(cls, what: str, names: Iterable[str]) -> None:
        """Limit these loggers together to one line a minute, however often this is called. A logger
        that has a limit already keeps it.
        """
        limit = cls._of_purpose.setdefault(what, cls(what))
        for logger in map(logging.getLogger, names):
            if not any(isinstance(present, RateLimitedLog) for present in logger.filters):
                logger.addFilter(limit)

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._what = what
        self._clock = clock
        self._next = clock()
        self._held_back = 0
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is let through."""
        with self._lock:
            now = self._clock()
            if now < self._next:
                self._held_back += 1
                return False
            self._next = now + _PAUSE
            held_back, self._held_back = self._held_back, 0
        text = " ".join(record.getMessage().split())
        text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        record.msg = f"{self._what}: {text}" + (
            f" ({held_back} more lines since the last one)" if held_back else ""
        )
        record.args = None
        record.exc_info = None
        return True
