"""Handlers that remember, in the loop, in threads and in processes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hybrid_runner import (
    ConfigurationError,
    Fail,
    Job,
    RetryPolicy,
    Runner,
    Snooze,
    StaleClaim,
)
from hybrid_runner.waiting.backoff import Backoff

app = Runner()
AT_ONCE = RetryPolicy(0.01, cap=0.01)
SOON = Backoff(0.05, cap=0.05, jitter=0)


class Seen(BaseModel):
    """A memory with defaults alone."""

    looks: int = 0
    names: list[str] = []


class Task(BaseModel):
    """A memory that has to be given."""

    task: str
    looks: int = 0


@dataclass
class Span:
    """What only its own type can write as JSON."""

    since: timedelta = timedelta(0)


def wait(job: Job[Span]) -> float | Snooze:
    """The same value each time, as handlers may say it."""
    return LONGER if job.snoozes < 2 else job.data.since.total_seconds()


LONGER = Snooze(0.01, data=Span(timedelta(seconds=90)))


@app.job("wait_in_loop")
async def wait_in_loop(_: Any, job: Job[Span]) -> float | Snooze:
    return wait(job)


@app.job("wait_in_process", executor="process")
def wait_in_process(_: Any, job: Job[Span]) -> float | Snooze:
    return wait(job)


def look(job: Job[Seen]) -> dict[str, Any] | Snooze:
    """Change the memory in place, and ask for later."""
    job.data.looks += 1
    job.data.names.append("x" * job.data.looks)
    if job.data.looks < 3:
        return job.later()
    return {"looks": job.data.looks, "names": job.data.names, "snoozes": job.snoozes}


@app.job("look_in_loop", pace=SOON)
async def look_in_loop(_: Any, job: Job[Seen]) -> dict[str, Any] | Snooze:
    return look(job)


@app.job("look_in_thread", pace=SOON, data=Seen)
def look_in_thread(_: Any, job: Job[Seen]) -> dict[str, Any] | Snooze:
    return look(job)


@app.job("look_in_process", pace=SOON, executor="process")
def look_in_process(_: Any, job: Job[Seen]) -> dict[str, Any] | Snooze:
    return look(job)


def start(job: Job) -> str:
    """What a second attempt finds after the first one has saved and died."""
    if job.data is not None:
        return f"{job.data['task']} in attempt {job.attempt}"
    job.save({"task": "t1"})
    raise RuntimeError("after it was started")


@app.job("start_in_loop", retry=AT_ONCE)
async def start_in_loop(_: Any, job: Job) -> str:
    if job.data is not None:
        return f"{job.data['task']} in attempt {job.attempt}"
    await job.save({"task": "t1"})
    raise RuntimeError("after it was started")


@app.job("save_and_hang")
async def save_and_hang(where: str, job: Job) -> str:
    """Hangs in its first attempt, once it has saved."""
    if job.data is None:
        save = partial(job.save, {"task": where})
        await (save() if where == "loop" else asyncio.to_thread(save))
        await asyncio.Event().wait()
    return f"{job.data['task']} in attempt {job.attempt}"


@app.job("start_in_thread", retry=AT_ONCE)
def start_in_thread(_: Any, job: Job) -> str:
    return start(job)


@app.job("start_in_process", retry=AT_ONCE, executor="process")
def start_in_process(payload: Any, job: Job) -> str:
    if payload == "die" and job.data is None:
        job.save({"task": "t1"})
        os.kill(os.getpid(), signal.SIGKILL)
    return start(job)


@app.job("save_from_threads", executor="process")
def save_from_threads(count: int, job: Job) -> int:
    """All are stored before it ends, and what a thread saves after that is refused."""
    threads = [threading.Thread(target=job.save, args=({"n": n},)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(thread.is_alive() for thread in threads)


@app.job("save_in_fork", executor="process")
def save_in_fork(_: Any, job: Job) -> str:
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            job.save({"by": "fork"})
        except ConfigurationError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.wait()
    return os.read(reading, 1000).decode()


@app.job("outlive", executor="process")
def outlive(file: str, job: Job) -> None:
    """A thread that goes on after the attempt tries to save."""

    def save_later() -> None:
        try:
            while True:
                job.save({"from": "thread"})
        except StaleClaim as error:
            Path(f"{file}.new").write_text(str(error))
            Path(f"{file}.new").rename(file)

    threading.Thread(target=save_later, daemon=True).start()


@app.job("then_in_loop")
async def then_in_loop(_: Any, job: Job) -> None:
    job.then(add, [1])


@app.job("then_in_thread")
def then_in_thread(_: Any, job: Job) -> None:
    job.then(add, [1])


@app.job("then_in_process", executor="process")
def then_in_process(_: Any, job: Job) -> None:
    job.then(add, [1])


@app.job("follow_in_process", executor="process")
def follow_in_process(payload: dict[str, Any], job: Job) -> str | Fail:
    """Jobs that are to follow, of kinds that this process knows and of others."""
    job.then(look_in_loop, {"a": 1}, key="k", delay="1h", priority=3, data={"looks": 2})
    job.then("add", [1, 2])
    if payload.get("fail"):
        return Fail("no", then=add.new([3, 4], key="undo", timeout="5m"))
    return "done"


@app.job("fail_with_many", executor="process")
def fail_with_many(_: Any) -> Fail:
    return Fail("no", then=[add.new([])] * 1001)


@app.job("add", queue="sums")
def add(numbers: list[int]) -> int:
    return sum(numbers)
