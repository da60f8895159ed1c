"""The jobs: one starts a query, one looks at it again and again without holding a slot, one cleans
up after it however it ended. `hybrid-runner worker examples.query_runner.app:app` runs them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from examples.query_runner.runs import Runs
from examples.query_runner.warehouse import Unreachable, warehouse
from hybrid_runner import (
    Backoff,
    Confirmations,
    Ended,
    Fail,
    Gate,
    Job,
    Runner,
    Snooze,
    Tries,
)

QUEUE = "shell-query"
WORDS = {"completed": "ready", "failed": "failed", "cancelled": "canceled"}
app = Runner()  # HYBRID_RUNNER_DSN; without it an embedded Postgres
runs = Runs(lambda: app.dsn)


class Query(BaseModel):
    run: str
    sql: str


class Start(BaseModel):
    task: str = ""


class Poll(BaseModel):
    task: str = ""
    idle: Confirmations = Confirmations(times=2, apart="15s")
    rows: Tries = Tries(most=6, pace=Backoff("1.5s", cap="8s"))
    probe: Gate = Gate(after="5s", every="15s")
    hinted: Gate = Gate(after="5s")
    stuck: Gate = Gate(after="3m")


class Result(BaseModel):
    rows: int
    by: Literal["status", "probe", "stillness"]


@app.job("execute-shell-query", queue=QUEUE, data=Start, on_end="clean-up-query")
async def execute(query: Query, job: Job[Start]) -> str:
    start = job.data
    if not start.task:
        start.task = await warehouse.start(query.run, query.sql)
        await job.save()  # from here on a crash does not start it twice
    await runs.started(query.run, start.task)
    job.then(poll, query, key=f"poll-{query.run}", delay="2s", data=Poll(task=start.task))
    return start.task


@app.job(
    "poll-shell-query",
    queue=QUEUE,
    data=Poll,
    pace=Backoff("2s", cap="30s", jitter=0.2),
    max_snoozes=120,
    max_duration="29m",
    on_end="clean-up-query",
    keep_completed="1h",
    keep_failed="1d",
)
async def poll(query: Query, job: Job[Poll]) -> Result | Snooze | Fail:
    try:
        return await look(query, job)
    except Unreachable as error:
        return job.later(f"the warehouse: {error}")


async def look(query: Query, job: Job[Poll]) -> Result | Snooze | Fail:
    seen = job.data
    status = await warehouse.status(seen.task)
    if status.error or "error" in status.word:
        return Fail(status.error or status.word)
    if seen.probe.opens(job) and (found := await warehouse.count(query.run)):
        return Result(rows=found, by="probe")
    if status.word == "complete":
        return await rows(query, job, "status")
    if (status.hint and seen.hinted.opens(job)) or seen.stuck.opens(job):
        if await warehouse.is_running(query.run):
            seen.idle.forget()
        elif seen.idle.confirm(job):
            return await rows(query, job, "stillness")
    return job.later()


async def rows(
    query: Query, job: Job[Poll], by: Literal["status", "stillness"]
) -> Result | Snooze | Fail:
    if (found := await warehouse.count(query.run)) is not None:
        return Result(rows=found, by=by)
    tries = job.data.rows
    return tries.again(job) or Fail(f"its rows cannot be read after {tries.most} tries")


@app.job("clean-up-query", queue=QUEUE, max_attempts=20)
async def clean_up(end: Ended[Query, Poll]) -> None:
    """Tell the run's row how it ended, and remove what is left of it in the warehouse."""
    if end.kind == execute.name and end.state == "completed":
        return  # it has begun: `poll` looks after it now
    result = end.result or {}
    await runs.ended(
        end.payload.run, WORDS[end.state], result.get("rows"), result.get("by"), end.reason
    )
    await sweep(end.payload)


@app.job("sweep-query", queue=QUEUE, max_attempts=20)
async def sweep(query: Query) -> None:
    await warehouse.delete(query.run)
    await runs.cleaned(query.run)


@app.reconcile("1m", kind=poll, key="poll-{run}")
def unwatched() -> str:
    """Runs that go on, and that nobody looks at any more."""
    return """
        SELECT id::text AS run, sql, jsonb_build_object('task', task_id) AS data
        FROM query_runner.runs AS run
        WHERE status = 'running' AND task_id IS NOT NULL
        AND started_at < now() - interval '1 minute'
        AND NOT EXISTS (
            SELECT FROM hybrid_runner.jobs
            WHERE kind = 'clean-up-query' AND payload -> 'payload' ->> 'run' = run.id::text
        )
    """


@app.reconcile("5m", kind=sweep, key="sweep-{run}")
def unclean() -> str:
    """Runs that have ended, and whose clean-up has failed for good."""
    return """
        SELECT id::text AS run, sql FROM query_runner.runs
        WHERE cleaned_at IS NULL AND ended_at < now() - interval '5 minutes'
    """
