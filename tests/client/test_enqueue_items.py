"""What counts for each job of a bulk call, and how its errors name the one that is wrong."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from hybrid_runner import ConfigurationError, KeyTaken, NewJob, Runner, RunnerError
from hybrid_runner.storage.connections.connection import Connection
from tests.support.working import runner

LATER = datetime(2040, 1, 2, tzinfo=UTC)


class Order(BaseModel):
    """A payload that says its key."""

    id: int


def with_handlers(dsn: str) -> Runner:
    """A handler with a queue of its own."""
    app = runner(dsn)

    @app.job("charge", queue="money")
    async def charge(payload: Order) -> None: ...

    return app


async def stored(database: Connection, columns: str) -> list[tuple[Any, ...]]:
    """These columns of all jobs in the order of ids."""
    return [
        tuple(row)
        for row in await database.fetch(
            f"SELECT {columns} FROM hybrid_runner.jobs ORDER BY run_at, id"
        )
    ]


async def test_options_beside_a_new_job_count_for_it(dsn: str, database: Connection) -> None:
    end = datetime(2041, 1, 2, tzinfo=UTC)
    async with with_handlers(dsn) as app:
        await app.enqueue_many(
            app.registry["charge"],
            [NewJob("charge", '{"id": 1}'), Order(id=2), NewJob("charge", '{"id": 3}', key="k")],
            run_at=LATER,
            priority=0,
            max_attempts=2,
            timeout="9s",
            finish_by=end,
            data={"seen": 0},
        )
    columns = "queue, run_at, priority, max_attempts, timeout, finish_by, data"
    assert (
        await stored(database, columns)
        == [("money", LATER, 0, 2, timedelta(seconds=9), end, '{"seen": 0}')] * 3
    )


async def test_a_delay_beside_a_new_job_is_not_forgotten(dsn: str, database: Connection) -> None:
    async with with_handlers(dsn) as app:
        await app.enqueue_many(
            app.registry["charge"], [NewJob("charge", '{"id": 1}')], delay="1h", priority=0
        )
    assert await stored(database, "queue, priority, run_at > now() + interval '50 min'") == [
        ("money", 0, True)
    ]


@pytest.mark.parametrize(
    ("job", "options", "says"),
    [
        (
            NewJob("charge", priority=3),
            {"priority": 0},
            "]: priority is 3 in this NewJob and 0 beside it",
        ),
        (
            NewJob("charge", queue="a", key="k"),
            {"queue": "b"},
            "] \\(key 'k'\\): queue is 'a' in this NewJob and 'b' beside it",
        ),
        (
            NewJob("charge", run_at=LATER),
            {"delay": "1h"},
            "]: run_at is given in this NewJob and delay beside it",
        ),
        (
            NewJob("charge", delay=timedelta(1)),
            {"run_at": LATER},
            "]: delay is given in this NewJob and run_at beside it",
        ),
    ],
)
async def test_a_new_job_that_says_something_else_itself_is_refused(
    job: NewJob, options: dict[str, Any], says: str, dsn: str, database: Connection
) -> None:
    async with with_handlers(dsn) as app:
        with pytest.raises(ConfigurationError, match=rf"payloads\[1{says}"):
            await app.enqueue_many("charge", [{"id": 1}, job], **options)
    assert await stored(database, "id") == []


async def test_a_new_job_may_say_the_same_as_the_options(dsn: str, database: Connection) -> None:
    async with with_handlers(dsn) as app:
        await app.enqueue_many(
            "charge", [NewJob("charge", priority=3, run_at=LATER)], priority=3, run_at=LATER
        )
    assert await stored(database, "priority, run_at") == [(3, LATER)]


async def test_the_queue_of_a_new_job_is_its_own_or_that_of_its_kinds_handler(
    dsn: str, database: Connection
) -> None:
    async with with_handlers(dsn) as app:
        jobs = [
            NewJob("charge"),
            NewJob("unheard"),
            NewJob("charge", queue="own"),
            NewJob("charge", key="k"),
        ]
        await app.enqueue_many("unheard", jobs)
    assert await stored(database, "kind, queue") == [
        ("charge", "money"),
        ("unheard", "default"),
        ("charge", "own"),
        ("charge", "money"),
    ]


async def test_a_function_makes_the_key_of_each_payload(dsn: str, database: Connection) -> None:
    async with with_handlers(dsn) as app:
        orders = [Order(id=n) for n in range(4)]
        first = await app.enqueue_many(
            app.registry["charge"], orders, key=lambda o: f"charge:{o.id}" if o.id else None
        )
        again = await app.enqueue_many(
            app.registry["charge"], orders[1:], key=lambda o: f"charge:{o.id}"
        )
    assert [one.enqueued for one in (*first, *again)] == ["inserted"] * 4 + ["exists"] * 3
    assert [one.id for one in again] == [one.id for one in first[1:]]
    assert await stored(database, "key") == [(None,), ("charge:1",), ("charge:2",), ("charge:3",)]


async def test_the_function_is_asked_for_payloads_and_new_jobs_keep_their_keys(
    dsn: str, database: Connection
) -> None:
    async with with_handlers(dsn) as app:
        await app.enqueue_many(
            "charge",
            [NewJob("charge", key="own"), {"id": 7}, NewJob("charge")],
            key=lambda o: str(o["id"]),
        )
    assert await stored(database, "key") == [("own",), ("7",), (None,)]


async def test_what_the_key_function_raises_names_the_item(dsn: str) -> None:
    async with with_handlers(dsn) as app:
        with pytest.raises(KeyError) as raised:
            await app.enqueue_many("any", [{"id": 1}, {}], key=lambda o: str(o["id"]))
    assert raised.value.__notes__ == ["raised by key(payloads[1])"]


@pytest.mark.parametrize(
    ("kind", "payloads", "options", "says"),
    [
        (
            "charge",
            [{"id": 1}, {"id": "x"}],
            {},
            r"^payloads\[1\]: the payload does not fit charge: id: ",
        ),
        (
            "charge",
            [NewJob("charge"), {"id": 1}, {}],
            {},
            r"^payloads\[2\]: the payload does not fit charge: id: ",
        ),
        ("any", [1, float("nan")], {}, r"^payloads\[1\]: any: the payload contains NaN"),
        (
            "any",
            [1, 2],
            {"key": lambda n: "k" * n * 300},
            r"^payloads\[1\]: key must be a text of 1 to 512 bytes",
        ),
        ("any", [1, 2], {"key": lambda n: n}, r"^payloads\[0\]: key must be a text"),
        ("any", [1, 2], {"key": "one for all"}, "takes as `key` a function"),
        (
            "any",
            [1, NewJob("any", queue="no queue")],
            {},
            r"^payloads\[1\]: 'no queue' is not a queue",
        ),
        ("any", [1, NewJob("no kind")], {}, r"^payloads\[1\]: 'no kind' is not a kind"),
        (
            "any",
            [NewJob("any"), NewJob("any", priority=10, key="k")],
            {},
            r"^payloads\[1\] \(key 'k'\): priority must be 0 to 9",
        ),
        (
            "any",
            [1, NewJob("any", key="k" * 513)],
            {},
            r"^payloads\[1\] \(key 'k+'\): key must be a text",
        ),
        (
            "any",
            [NewJob("any", key="a"), NewJob("any", key="")],
            {},
            r"^payloads\[1\]: key must be a text",
        ),
        (
            "any",
            [NewJob("any", delay="1h")],  # type: ignore[arg-type]
            {},
            r"^payloads\[0\]: delay of a NewJob is a timedelta, not str",
        ),
        (
            "any",
            [NewJob("any", timeout=5)],  # type: ignore[arg-type]
            {},
            r"^payloads\[0\]: timeout of a NewJob is a timedelta, not int",
        ),
        (
            "any",
            [NewJob("any", data={"a": 1})],  # type: ignore[arg-type]
            {},
            r"^payloads\[0\]: data of a NewJob is a str, not dict",
        ),
        (
            "any",
            [NewJob("any", payload={"a": 1})],  # type: ignore[arg-type]
            {},
            r"^payloads\[0\]: the payload of a NewJob is JSON text, not dict",
        ),
        ("any", [1, 2, NewJob("any", "{"), 4], {}, r"^payloads\[2\]: the payload is not JSON"),
        (
            "any",
            [1, NewJob("any", "{", key="k")],
            {},
            r"^payloads\[1\] \(key 'k'\): the payload is not JSON",
        ),
        (
            "any",
            [1, NewJob("any", f'"{"x" * 2_000_000}"')],
            {},
            r"^payloads\[1\]: the payload has 2,000,002 bytes of JSON",
        ),
        ("any", [1], {"prioriti": 3}, "enqueue has no option 'prioriti': did you mean 'priority'"),
    ],
)
async def test_an_error_names_the_item(
    kind: str,
    payloads: list[Any],
    options: dict[str, Any],
    says: str,
    dsn: str,
    database: Connection,
) -> None:
    async with with_handlers(dsn) as app:
        with pytest.raises(RunnerError, match=says) as refusal:
            await app.enqueue_many(kind, payloads, **options)
    assert "\n" not in str(refusal.value)
    assert await stored(database, "id") == []


@pytest.mark.parametrize("key", ["taken", "it's", "100%"])
async def test_a_taken_key_names_the_item(key: str, dsn: str) -> None:
    async with with_handlers(dsn) as app:
        job = (await app.enqueue("any", key=key)).id
        with pytest.raises(KeyTaken) as taken:
            await app.enqueue_many(
                "any", ["free", key], key=lambda payload: payload, on_conflict="error"
            )
    assert str(taken.value).startswith(f"payloads[1] (key {key!r}): ")
    assert f"held by live job {job}" in str(taken.value)


async def test_a_single_job_refuses_options_that_there_are_not(dsn: str) -> None:
    async with with_handlers(dsn) as app:
        with pytest.raises(
            ConfigurationError, match="enqueue has no option 'delya': did you mean 'delay'"
        ):
            await app.enqueue("any", delya="1h")  # type: ignore[call-overload]


async def test_a_connection_of_another_driver_is_refused_in_one_line(dsn: str) -> None:
    app, engine = Runner(dsn), sqlite3.connect(":memory:")
    foreign: Any = engine
    for call in (
        lambda: app.enqueue("any", {}, connection=foreign),
        lambda: app.enqueue_many("any", [{}], connection=foreign),
        lambda: app.signal("k", connection=foreign),
    ):
        with pytest.raises(ConfigurationError) as refused:
            await call()
        assert str(refused.value) == (
            "connection must be one of asyncpg, not sqlite3.Connection: with another driver call"
            " the SQL function, as docs/enqueue.md shows"
        )
    engine.close()
