"""The handler, and how the application's table is attached. More workers:
`hybrid-runner worker examples.execution_jobs.app:app`.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg
from pydantic import BaseModel

from examples.execution_jobs.browser import browser
from hybrid_runner import Columns, Job, Runner, Words

QUEUE = "browser-tests"
TABLE = "browser_tests.execution_jobs"
app = Runner()  # HYBRID_RUNNER_DSN; without it an embedded Postgres


class Execution(BaseModel):
    """What the handler needs of a row; it gets all its columns."""

    id: UUID
    recording_id: UUID
    csv_data: list[dict[str, str]]


@app.job("execute-recording", queue=QUEUE, max_attempts=3, timeout="10m")
async def execute(execution: Execution, job: Job) -> None:
    """Plays the recording once for each row of the CSV file that has no result yet: an attempt
    goes on where the one before it stopped.
    """
    connection: asyncpg.Connection[Any] = await asyncpg.connect(
        app.dsn, server_settings={"role": "service_role"}
    )
    try:
        steps, done = await read(connection, execution)
        for number, values in enumerate(execution.csv_data, 1):
            if number in done:
                continue
            trouble = await browser.play(steps, values)
            await connection.execute(
                "INSERT INTO browser_tests.execution_results"
                " (execution_job_id, row_number, is_passed, message) VALUES ($1, $2, $3, $4)"
                " ON CONFLICT DO NOTHING",
                execution.id,
                number,
                trouble is None,
                trouble,
            )
            await job.progress(number / len(execution.csv_data))
    finally:
        await connection.close()


async def read(
    connection: asyncpg.Connection[Any], execution: Execution
) -> tuple[list[str], set[int]]:
    """The steps of the recording, and the numbers of the rows that have a result."""
    steps = await connection.fetch(
        "SELECT jsonb_array_elements_text(steps) FROM browser_tests.recordings WHERE id = $1",
        execution.recording_id,
    )
    done = await connection.fetch(
        "SELECT row_number FROM browser_tests.execution_results WHERE execution_job_id = $1",
        execution.id,
    )
    return [step for (step,) in steps], {number for (number,) in done}


async def attach() -> None:
    """Once, when the tables are made or changed; by whoever owns them."""
    await app.attach(
        TABLE,
        kind=execute,
        words=Words(
            queued="queued",
            running="running",
            completed="completed",
            failed="failed",
            cancelled="cancelled",
        ),
        columns=Columns(
            status="status",
            worker_id="worker_id",
            started_at="started_at",
            finished_at="completed_at",
            error="error_message",
        ),
    )
