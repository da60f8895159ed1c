"""Small parts for whatever calls something that may fail: each can be used alone.

`breaker`, `due_times`, `adapt` and `loop_state` decide, and are pure; the others act in one event
loop.
"""

from hybrid_runner.resilience.adapt import Adapt
from hybrid_runner.resilience.breaker import Breaker, BreakerState
from hybrid_runner.resilience.changes import Change
from hybrid_runner.resilience.clock import Clock, Timer
from hybrid_runner.resilience.coalescing import Coalescing
from hybrid_runner.resilience.due_times import DueTimes
from hybrid_runner.resilience.host_limits import HostLimits, Place
from hybrid_runner.resilience.loop_state import BackoffState
from hybrid_runner.resilience.scheduler import AdaptiveScheduler
from hybrid_runner.waiting.backoff import Backoff

__all__ = [
    "Adapt",
    "AdaptiveScheduler",
    "Backoff",
    "BackoffState",
    "Breaker",
    "BreakerState",
    "Change",
    "Clock",
    "Coalescing",
    "DueTimes",
    "HostLimits",
    "Place",
    "Timer",
]
