"""The monitors, and who is told of a change."""

from __future__ import annotations

from collections import deque

from hybrid_runner import Runner
from hybrid_runner.monitors import Monitors, StatusChange
from hybrid_runner.resilience import Breaker
from hybrid_runner.waiting.backoff import Backoff

app = Runner()  # HYBRID_RUNNER_DSN; without it an embedded Postgres
# Quicker than a shop would want it: in a minute all of it is to be seen.
monitors = Monitors(
    app,
    per_host=5,
    breaker=Breaker(failures=3, cooldown="15s"),
    backoff=Backoff("1s", cap="10s"),
)
told: deque[StatusChange] = deque(maxlen=100)


@monitors.on("status:change")
async def page(event: StatusChange) -> None:
    """A job per event, tried again if it raises. A message to whoever is on call would be here."""
    told.append(event)
