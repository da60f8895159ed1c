"""The handler, and how the application's table is attached. More workers:
`hybrid-runner worker examples.audits.app:app`.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg
from pydantic import BaseModel

from examples.audits.site import NoSuchSite, sites
from hybrid_runner import Columns, Fail, Job, RetryPolicy, Runner, Words

QUEUE = "site-analysis"
TABLE = "site_analysis.audits"
WHEN = "status = 'pending' AND website_url <> ''"
PRIORITY = "CASE WHEN requested_email LIKE '%@customer.example' THEN 2 ELSE 5 END"
# Whoever said nothing for five minutes is dead; workers say something every 30 s.
app = Runner(lease="5m", heartbeat="30s")


class Audit(BaseModel):
    """What the handler needs of a row; it gets all its columns."""

    id: UUID
    website_url: str


@app.job("analyse-site", queue=QUEUE, max_attempts=3, timeout="10m", retry=RetryPolicy(base="2s"))
async def audit(row: Audit, job: Job) -> dict[str, int]:
    try:
        scores = await sites.audit(row.website_url)
    except NoSuchSite as error:
        raise Fail(str(error)) from None  # no further attempt would find one
    connection: asyncpg.Connection[Any] = await asyncpg.connect(app.dsn)
    try:
        # The report's address and the end of the job: both, or neither.
        async with connection.transaction():
            await connection.execute(
                "UPDATE site_analysis.audits SET report_pdf_url = $2 WHERE id = $1",
                row.id,
                f"https://reports.example/{row.id}.pdf",
            )
            await job.complete(scores, connection=connection)
    finally:
        await connection.close()
    return scores


async def attach() -> None:
    """Once, when the table is made or changed; by whoever owns it."""
    await app.attach(
        TABLE,
        kind=audit,
        when=WHEN,
        priority=PRIORITY,
        words=Words(queued="pending", running="processing", completed="completed", failed="failed"),
        columns=Columns(
            status="status",
            worker_id="processing_worker_id",
            started_at="processing_started_at",
            heartbeat_at="last_heartbeat",
            finished_at="processing_completed_at",
            retry_count="retry_count",
            result="raw_data",
            error="errors",
        ),
    )
