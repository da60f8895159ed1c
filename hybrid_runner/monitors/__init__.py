"""Health polling of many services by the fleet: one recurring job for each host."""

from hybrid_runner.monitors.answers.expect import Expect
from hybrid_runner.monitors.answers.mapping import Equals, Mapping
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.events import (
    EVENTS,
    Change,
    CircuitClose,
    CircuitOpen,
    DependencyGone,
    MonitorEvent,
    PollComplete,
    PollError,
    ServiceDown,
    ServiceEvent,
    ServiceStarted,
    ServiceStopped,
    ServiceUp,
    StatusChange,
)
from hybrid_runner.monitors.monitors import Monitors, PollResult

__all__ = [
    "EVENTS",
    "Change",
    "CircuitClose",
    "CircuitOpen",
    "DependencyGone",
    "Equals",
    "Expect",
    "Mapping",
    "MonitorEvent",
    "Monitors",
    "PollComplete",
    "PollError",
    "PollResult",
    "Secret",
    "ServiceDown",
    "ServiceEvent",
    "ServiceStarted",
    "ServiceStopped",
    "ServiceUp",
    "StatusChange",
]
