"""Handlers of rows of attached tables: in the loop, in a thread, in a process."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from hybrid_runner import Job, Runner

app = Runner()


class Audit(BaseModel):
    """What a handler wants of a row."""

    id: int
    website_url: str
    status: str


def _seen(row: Audit, job: Job) -> dict[str, Any]:
    return {"seen": row.model_dump(), "attempt": job.attempt}


@app.job("audit_in_loop")
async def audit_in_loop(row: Audit, job: Job) -> dict[str, Any]:
    return _seen(row, job)


@app.job("audit_in_thread")
def audit_in_thread(row: Audit, job: Job) -> dict[str, Any]:
    return _seen(row, job)


@app.job("audit_in_process", executor="process")
def audit_in_process(row: Audit, job: Job) -> dict[str, Any]:
    return _seen(row, job)
