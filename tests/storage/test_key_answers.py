"""What becomes of a job whose key is taken: one table, through every way of putting jobs in."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from hybrid_runner import KeyTaken, NewJob, Runner, RunnerError
from hybrid_runner.model.jobs import OnConflict, State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.jobs import claim, ended, enqueue, living, running
from tests.support.working import runner

Use = dict[str, Any]
"""Options of a call."""
ITEM = {"item": "new"}
ENQUEUE = "SELECT id, outcome FROM hybrid_runner.enqueue_job('work', $1::text::jsonb, key => $2 {})"

# --- who has the key


async def nobody(database: Connection) -> None:
    """The key is free."""


async def waits(database: Connection) -> None:
    await enqueue(database, "k", payload='[{"item": "old"}]')


async def runs(database: Connection) -> None:
    await running(database, "k")


async def runs_before_another(database: Connection) -> None:
    await running(database, "k")
    await database.execute(ENQUEUE.format(", on_conflict => 'collect'"), '{"item": "old"}', "k")


async def waits_for_its_retry(database: Connection) -> None:
    taken = await running(database, "k")
    await claim_calls.requeue_jobs(
        database, [Requeued(taken, timedelta(hours=1), charged=True, why="retry")]
    )


async def has_ended(database: Connection) -> None:
    await ended(database, key="k")


async def took_it_for_longer_and_has_ended(database: Connection) -> None:
    await database.execute(ENQUEUE.format(", unique_for => '1 hour'"), "{}", "k")
    await living(database, lease=timedelta(hours=1))
    [taken] = await claim(database)
    await claim_calls.finish_jobs(database, [Finished(taken, State.COMPLETED, result="null")])


# --- the ways to put a job in


async def by_sql(on: Connection, _app: Runner, use: Use) -> str:
    arguments = "".join(f", {name} => '{value}'" for name, value in use.items())
    row = await on.fetchrow(ENQUEUE.format(arguments), json.dumps(ITEM), "k")
    assert row is not None
    return str(row["outcome"])


async def by_enqueue(on: Connection, app: Runner, use: Use) -> str:
    handle = await app.enqueue("work", ITEM, key="k", connection=on, **use)
    return handle.enqueued


async def in_bulk(on: Connection, app: Runner, use: Use) -> str:
    return (await many(on, app, use, ["k"]))[0]


async def in_bulk_among_others(on: Connection, app: Runner, use: Use) -> str:
    answers = await many(on, app, use, ["a", "k", "z"])
    await on.execute("DELETE FROM hybrid_runner.jobs WHERE key IN ('a', 'z')")
    assert (answers[0], answers[2]) == ("inserted", "inserted")
    return answers[1]


async def many(on: Connection, app: Runner, use: Use, keys: list[str]) -> list[str]:
    """Bulk: what became of a job with each of these keys."""
    given = iter(keys)
    stored = await app.enqueue_many(
        "work", [ITEM for _ in keys], key=lambda _: next(given), connection=on, **use
    )
    return [job.enqueued for job in stored]


WAYS: list[Callable[[Connection, Runner, Use], Awaitable[str]]] = [
    by_sql,
    by_enqueue,
    in_bulk,
    in_bulk_among_others,
]

HOLDERS = [
    nobody,
    waits,
    runs,
    runs_before_another,
    waits_for_its_retry,
    has_ended,
    took_it_for_longer_and_has_ended,
]
ANSWERS: dict[str, list[str]] = {
    # in the order of HOLDERS
    "exists": ["inserted", *["exists"] * 4, "inserted", "inserted"],
    "error": ["inserted", *["error"] * 4, "inserted", "inserted"],
    "replace": ["inserted", "replaced", "exists", "exists", "replaced", "inserted", "inserted"],
    "follow": ["inserted", "replaced", "follows", "replaced", "replaced", "inserted", "inserted"],
    "collect": ["inserted", "collected", "follows", "collected", "follows", "inserted", "inserted"],
}
UNIQUE = {
    "exists": ["inserted", *["exists"] * 4, "inserted", "exists"],
    "error": ["inserted", *["error"] * 4, "inserted", "error"],
}
CASES: list[tuple[Use, Callable[[Connection], Awaitable[None]], str]] = [
    ({"on_conflict": on_conflict} | more, holder, answer)
    for table, more in ((ANSWERS, {}), (UNIQUE, {"unique_for": "1h"}))
    for on_conflict, answers in table.items()
    for holder, answer in zip(HOLDERS, answers, strict=True)
]


async def stored(database: Connection) -> list[tuple[Any, ...]]:
    """What is told of the live jobs, in their order."""
    rows = await database.fetch(
        "SELECT key, state::text, payload, priority, attempt, run_at > now() + interval '1 minute'"
        " FROM hybrid_runner.jobs ORDER BY id"
    )
    return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("use", "holder", "answer"),
    [pytest.param(*case, id=f"{'-'.join(case[0].values())} {case[1].__name__}") for case in CASES],
)
async def test_every_way_gives_the_same_answer_and_stores_the_same(
    database: Connection,
    dsn: str,
    use: Use,
    holder: Callable[[Connection], Awaitable[None]],
    answer: str,
) -> None:
    app, left = runner(dsn), []
    for way in WAYS:
        await holder(database)
        try:
            said = await way(database, app, use)
        except (KeyTaken, asyncpg.UniqueViolationError):
            said = "error"
        assert said == answer, way.__name__
        left.append(await stored(database))
        await forget(database)
    assert all(rows == left[0] for rows in left)


async def forget(database: Connection) -> None:
    """All jobs, and what they took."""
    await database.execute(
        "TRUNCATE hybrid_runner.jobs, hybrid_runner.archive, hybrid_runner.taken_keys"
    )


# --- twice in one call

TWICE = {
    "exists": ["inserted", "exists", "exists"],
    "replace": ["inserted", "replaced", "replaced"],
    "follow": ["inserted", "replaced", "replaced"],
    "collect": ["inserted", "collected", "collected"],
}


@pytest.mark.parametrize("on_conflict", TWICE)
async def test_a_key_that_is_in_one_call_several_times_is_taken_in_its_order(
    database: Connection, dsn: str, on_conflict: OnConflict
) -> None:
    app, left = runner(dsn), []
    for in_one_call in (True, False):
        jobs = [NewJob("work", json.dumps({"item": n}), key="k") for n in range(3)]
        answers = []
        for batch in [jobs] if in_one_call else [[job] for job in jobs]:
            answers += await app.enqueue_many(
                "work", batch, connection=database, on_conflict=on_conflict
            )
        assert [each.enqueued for each in answers] == TWICE[on_conflict]
        assert len({each.id for each in answers}) == 1
        left.append(await stored(database))
        await forget(database)
    assert left[0] == left[1]


# --- what is refused

DROPS = ": it would drop the last event"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"on_conflict": "follow", "key": None}, "follow needs a key"),
    ({"on_conflict": "collect", "key": None}, "collect needs a key"),
    ({"unique_for": "1h", "key": None}, "unique_for needs a key"),
    (
        {"on_conflict": "follow", "max_wait": "1h", "delay": "1s", "key": None},
        "follow needs a key",
    ),
    (
        {"on_conflict": "replace", "max_wait": "1h", "delay": "1s", "key": None},
        "max_wait needs a key and a delay",
    ),
    ({"on_conflict": "follow", "max_wait": "1h"}, "max_wait needs a key and a delay"),
    (
        {"max_wait": "1h", "delay": "1s"},
        "max_wait goes with on_conflict replace, follow or collect, not exists",
    ),
    (
        {"on_conflict": "follow", "max_wait": "0s", "delay": "1s"},
        "max_wait must be more than zero and at most ten years",
    ),
    (
        {"on_conflict": "follow", "unique_for": "1h"},
        f"unique_for goes with on_conflict exists or error, not follow{DROPS}",
    ),
    (
        {"on_conflict": "replace", "unique_for": "1h"},
        f"unique_for goes with on_conflict exists or error, not replace{DROPS}",
    ),
    ({"unique_for": "367d"}, "unique_for must be more than zero and at most 366 days"),
    ({"unique_for": "0s"}, "unique_for must be more than zero and at most 366 days"),
    (
        {"on_conflict": "follow", "max_items": 5},
        "max_items goes with on_conflict collect, not follow",
    ),
    ({"on_conflict": "collect", "max_items": 0}, "max_items must be 1 to 100000, not 0"),
    ({"on_conflict": "collect", "max_items": 100001}, "max_items must be 1 to 100000, not 100001"),
    ({"on_conflict": "collect", "payload": []}, "collect needs at least one item"),
    ({"key": ">k"}, "key must not start with >: that is how a job waits for another one's key"),
    (
        {"on_conflict": "follow", "key": "k" * 512},
        "a key for follow or collect is at most 511 bytes, not 512",
    ),
    (
        {"run_at": datetime(2032, 1, 1, tzinfo=UTC), "start_by": datetime(2031, 1, 1, tzinfo=UTC)},
        "start_by is before run_at: it could never begin",
    ),
]
_SQL_TYPES = {"run_at": "timestamptz", "start_by": "timestamptz", "max_items": "integer"}
_SQL_TYPES |= {"delay": "interval", "max_wait": "interval", "unique_for": "interval"}


@pytest.mark.parametrize(("given", "said"), REFUSED, ids=[said[:40] for _, said in REFUSED])
async def test_every_way_refuses_what_cannot_be_in_the_same_words(
    database: Connection, dsn: str, given: dict[str, Any], said: str
) -> None:
    app, options = runner(dsn), {"key": "k"} | given
    payload = options.pop("payload", ITEM)
    with pytest.raises(RunnerError) as one:
        await app.enqueue("work", payload, connection=database, **options)
    key = options.pop("key")
    with pytest.raises(RunnerError) as bulk:
        await app.enqueue_many("work", [payload], key=lambda _: key, connection=database, **options)
    arguments = "".join(
        f", {name} => '{value}'::{_SQL_TYPES.get(name, 'text')}" for name, value in options.items()
    )
    with pytest.raises(asyncpg.InvalidParameterValueError) as sql:
        await database.execute(ENQUEUE.format(arguments), json.dumps(payload), key)
    assert str(one.value) == str(sql.value) == said
    assert str(bulk.value).rpartition("): ")[2].removeprefix("payloads[0]: ") == said
    assert await stored(database) == []
