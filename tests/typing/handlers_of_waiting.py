"""Handlers as users write them; tests/typing/test_public_api.py checks it."""

from __future__ import annotations

from typing import Any, Never, assert_type

from pydantic import BaseModel

from hybrid_runner import (
    Backoff,
    Ended,
    Fail,
    Job,
    JobHandle,
    NewJob,
    Repeat,
    Runner,
    Snooze,
)

app = Runner("postgresql://nobody@localhost/never-opened")


class Order(BaseModel):
    number: int = 1


class Seen(BaseModel):
    looks: int = 0


@app.job("only-snoozes")
async def only_snoozes(payload: Order, job: Job[Seen]) -> Snooze:
    job.data.looks += 1
    return job.later()


@app.job("only-repeats")
def only_repeats(payload: Order, job: Job[Seen]) -> Repeat:
    return Repeat("1h")


@app.job("nothing-or-snooze", data=Seen)
async def nothing_or_snooze(payload: Order, job: Job[Seen]) -> Snooze | None:
    return job.later() if job.data.looks else None


def later(job: Job[Any]) -> Snooze:
    return job.later("a helper of handlers with any memory")


async def shared(payload: Order, job: Job[Seen]) -> int | Snooze:
    return later(job) if job.data.looks else 1


first = app.job("first", data=Seen)(shared)
second = app.job("second", data=Seen, pace=Backoff("1s", cap="5s"))(shared)


@app.job("clean-up")
async def clean_up(end: Ended[Order, Seen], job: Job) -> Fail:
    job.then(first, end.payload)
    later(job)
    return Fail("no", then=second.new(end.payload, delay="3s"))


async def calls() -> None:
    assert_type(await app.enqueue(first, Order(), data=Seen()), JobHandle[int])
    assert_type(await app.enqueue(nothing_or_snooze, Order()), JobHandle[None])
    recurring: JobHandle[Never] = await app.enqueue(only_repeats, Order())
    assert_type(recurring.id, int)
    assert_type((await app.enqueue(only_snoozes, Order())).id, int)
    assert_type(first.new(Order()), NewJob)
    await app.enqueue(first, "no order")  # type: ignore[misc]
