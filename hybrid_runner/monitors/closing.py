"""The end of a host's job that has had nothing to do for long."""

from __future__ import annotations

from hybrid_runner.handlers.job import Job
from hybrid_runner.monitors.app import App
from hybrid_runner.storage import monitor_calls


async def end_if_idle(app: App, host: str, job: Job) -> bool:
    """End it in the transaction in which nothing to do was seen; whether it has ended. A service
    that is added meanwhile either is seen, or has the host opened once this job is gone.
    """
    connection = await app.connect()
    try:
        async with connection.transaction():
            if not await monitor_calls.close_host(connection, host):
                return False
            await job.complete(connection=connection)
    finally:
        await connection.close()
    return True
