"""Small parts for whatever calls something that may fail: each can be used alone.

`adapt`, `breaker`, `due_times` and `loop_state` decide, and are pure; the others act in one event
loop.
"""

TYPE_CHECKING = False
"""As in `typing`: see `hybrid_runner/__init__.py`."""

if TYPE_CHECKING:
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

_MODULES = {
    "Adapt": "hybrid_runner.resilience.adapt",
    "AdaptiveScheduler": "hybrid_runner.resilience.scheduler",
    "Backoff": "hybrid_runner.waiting.backoff",
    "BackoffState": "hybrid_runner.resilience.loop_state",
    "Breaker": "hybrid_runner.resilience.breaker",
    "BreakerState": "hybrid_runner.resilience.breaker",
    "Change": "hybrid_runner.resilience.changes",
    "Clock": "hybrid_runner.resilience.clock",
    "Coalescing": "hybrid_runner.resilience.coalescing",
    "DueTimes": "hybrid_runner.resilience.due_times",
    "HostLimits": "hybrid_runner.resilience.host_limits",
    "Place": "hybrid_runner.resilience.host_limits",
    "Timer": "hybrid_runner.resilience.clock",
}
"""A name's module is imported when somebody asks for it: every command needs `log_events`, and few
need asyncio.
"""

if not TYPE_CHECKING:  # type checkers would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Import a public name."""
        from importlib import import_module  # noqa: PLC0415  # only for who uses the package

        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
