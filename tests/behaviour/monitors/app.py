"""What each member of the fleet runs. Its polls say whose they are; each event that it is told goes
into a table without a unique key.
"""

from __future__ import annotations

import os

from hybrid_runner import Runner
from hybrid_runner.monitors import Monitors, Secret, StatusChange
from hybrid_runner.resilience import Breaker
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.waiting.backoff import Backoff
from tests.behaviour.monitors.plan import COOLDOWN, FAILURES

HOSTS = tuple(f"127.0.2.{number}" for number in range(1, 201))
app = Runner()
DSN = app.settings.database.dsn or ""
monitors = Monitors(
    app,
    breaker=Breaker(failures=FAILURES, cooldown=COOLDOWN),
    backoff=Backoff("1s", cap="5s"),
    secrets={"worker": Secret(str(os.getpid()), hosts=HOSTS)},
    keep_polls=True,
)


@monitors.on("status:change")
async def told(event: StatusChange) -> None:
    connection = await connect(DSN)
    try:
        await connection.execute("INSERT INTO public.told (event_id) VALUES ($1)", event.id)
    finally:
        await connection.close()
