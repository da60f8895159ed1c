"""The app of the fleet test. Every run is written to a table without a unique key: a job that ran
twice is there twice.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg
from pydantic import BaseModel

from hybrid_runner import Job, Runner
from hybrid_runner.storage.connections.connection import connect

app = Runner()
DSN = app.settings.database.dsn or ""


class Number(BaseModel):
    n: int


def note_run(job: Job) -> None:
    with psycopg.connect(DSN) as connection:
        connection.execute(
            "INSERT INTO public.runs (job_id, pid, kind) VALUES (%s, %s, %s)",
            (job.id, os.getpid(), job.kind),
        )


@app.job("square")
async def square(payload: Number, job: Job) -> int:
    connection = await connect(DSN)
    await connection.execute(
        "INSERT INTO public.runs (job_id, pid, kind) VALUES ($1, $2, $3)",
        job.id,
        os.getpid(),
        job.kind,
    )
    await connection.close()
    return payload.n**2


@app.job("square_in_thread")
def square_in_thread(payload: Number, job: Job) -> int:
    note_run(job)
    return payload.n**2


@app.job("square_in_process", executor="process")
def square_in_process(payload: dict[str, Any], job: Job) -> int:
    note_run(job)
    return int(payload["n"]) ** 2
