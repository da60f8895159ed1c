"""Many named loops in one process, each with its own timer, failures and backoff."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import TracebackType
from typing import Self

from hybrid_runner.durations import Duration
from hybrid_runner.resilience.adapt import Adapt
from hybrid_runner.resilience.breaker import Breaker
from hybrid_runner.resilience.changes import Change
from hybrid_runner.resilience.clock import Clock
from hybrid_runner.resilience.loop_state import BackoffState


class AdaptiveScheduler:
    """Calls functions again and again, for as long as it is open."""

    def __init__(
        self,
        *,
        cap: float = 8.0,
        factor: float = 2.0,
        jitter: float = 0.0,
        stagger: Duration = "150ms",
        clock: Clock | None = None,
        on_change: Callable[[Change], None] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    def schedule(
        self,
        name: str,
        fn: Callable[[], object],
        interval: Duration,
        condition: Callable[[], object] | None = None,
        *,
        at_once: bool = False,
        jitter: float | None = None,
        breaker: Breaker | None = None,
        adapt: Adapt | None = None,
        while_paused: Duration | None = None,
        timeout: Duration | None = None,
    ) -> None:
        raise NotImplementedError

    def pause(self) -> None:
        raise NotImplementedError

    def resume(self) -> None:
        raise NotImplementedError

    def trigger(self, name: str) -> bool:
        raise NotImplementedError

    def backoff_state(self, name: str) -> BackoffState | None:
        raise NotImplementedError

    def reset_backoff(self, name: str) -> bool:
        raise NotImplementedError

    async def close(self, grace: Duration = "5s") -> None:
        raise NotImplementedError
