"""Handlers that hand out callback URLs; those for processes have to be importable."""

from __future__ import annotations

from typing import Any

from hybrid_runner import Job, Runner, Snooze

app = Runner()


def ask(job: Job) -> Any:
    if job.snoozes:
        return {"said": job.signalled, "timed_out": job.timed_out}
    url = job.callback_url("approved")
    return Snooze("1h", wake_on=f"approved:{job.id}", data={"url": url})


@app.job("ask_in_loop")
async def ask_in_loop(_: Any, job: Job) -> Any:
    return ask(job)


@app.job("ask_in_thread")
def ask_in_thread(_: Any, job: Job) -> Any:
    return ask(job)


@app.job("ask_in_process", executor="process")
def ask_in_process(_: Any, job: Job) -> Any:
    return ask(job)


@app.job("ask_by_a_wrong_name", max_attempts=1)
async def ask_by_a_wrong_name(_: Any, job: Job) -> str:
    return job.callback_url("approved:7")
