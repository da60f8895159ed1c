"""What `Runner.enqueue_many` promises, whichever statement it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from pydantic import BaseModel

from hybrid_runner import ConfigurationError, EnqueueError, NewJob, Runner
from hybrid_runner.handlers import new_jobs
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until
from tests.support.working import runner


class Picture(BaseModel):
    """A payload with a default."""

    url: str
    width: int = 80


def with_handlers(dsn: str) -> Runner:
    """A runner with a handler that takes anything and one that takes a Picture."""
    app = runner(dsn)

    @app.job("anything", queue="slow")
    async def anything(payload: Any) -> None: ...

    @app.job("picture")
    async def picture(payload: Picture) -> None: ...

    return app


async def stored(database: Connection) -> list[tuple[int, str, Any]]:
    """Id, kind and payload of what is in the table, in the order of claims."""
    rows = await database.fetch(
        "SELECT id, kind, payload FROM hybrid_runner.jobs ORDER BY run_at, id"
    )
    return [(row[0], row[1], json.loads(row[2])) for row in rows]


async def test_payloads_and_jobs_may_be_mixed_and_stay_in_order(
    dsn: str, database: Connection
) -> None:
    given = [
        {"n": 0},
        NewJob("other", '{"n": 1}'),
        {"n": 2},
        NewJob("other", '{"n": 3}', key="k"),
        {"n": 4},
    ]
    async with with_handlers(dsn) as app:
        answers = await app.enqueue_many("anything", given)
    kinds = ["anything", "other", "anything", "other", "anything"]
    expected = [
        (answer.id, kind, {"n": n})
        for n, (answer, kind) in enumerate(zip(answers, kinds, strict=True))
    ]
    assert await stored(database) == expected
    assert {answer.enqueued for answer in answers} == {"inserted"}


async def test_any_iterable_will_do_and_none_is_a_payload(dsn: str, database: Connection) -> None:
    async with with_handlers(dsn) as app:
        await app.enqueue_many("anything", (payload for payload in [None, 1, None]))
        await app.enqueue_many("unheard", iter([None]))
        assert await app.enqueue_many("anything", []) == []
    assert [payload for _, _, payload in await stored(database)] == [None, 1, None, None]


async def test_a_models_payloads_are_stored_as_one_by_one(dsn: str, database: Connection) -> None:
    given = [Picture(url="é"), {"url": "b", "width": "7"}]
    async with with_handlers(dsn) as app:
        await app.enqueue_many("picture", given)
        for payload in given:
            await app.enqueue("picture", payload)
    payloads = [payload for _, _, payload in await stored(database)]
    assert payloads == [{"url": "é", "width": 80}, {"url": "b", "width": 7}] * 2


async def test_what_all_share_is_every_jobs(dsn: str, database: Connection) -> None:
    end = datetime(2032, 1, 2, tzinfo=UTC)
    context = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    async with with_handlers(dsn) as app:
        with trace.use_span(NonRecordingSpan(context)):
            await app.enqueue_many(
                "anything",
                [1, 2],
                priority=2,
                delay="1h",
                max_attempts=3,
                timeout="9s",
                finish_by=end,
            )
    rows = await database.fetch(
        "SELECT queue, priority, max_attempts, timeout, finish_by, traceparent, run_at > now() +"
        " interval '50 min' FROM hybrid_runner.jobs"
    )
    traceparent = f"00-{1:032x}-{2:016x}-01"
    assert [tuple(row) for row in rows] == [
        ("slow", 2, 3, timedelta(seconds=9), end, traceparent, True)
    ] * 2


@pytest.mark.parametrize(
    ("kind", "payloads", "options", "says"),
    [
        (
            "picture",
            [{"url": "a"}, {"width": 1}],
            {},
            "the payload does not fit picture: url: Field required",
        ),
        ("anything", [1, float("nan")], {}, "anything: the payload contains NaN"),
        ("unheard", [1, "\x00"], {}, "unheard: the payload contains a NUL"),
        ("unheard", [NewJob("k"), object()], {}, "unheard: the payload cannot be written as JSON"),
        ("anything", [1, 2], {"priority": 10}, "priority must be 0 to 9"),
        ("anything", [1, 2], {"queue": "no queue"}, "is not a queue"),
        ("no kind", [1, 2], {}, "is not a kind"),
        ("anything", [1, 2], {"on_conflict": "perhaps"}, "on_conflict must be"),
    ],
)
async def test_one_that_does_not_fit_keeps_all_of_them_out(
    kind: str,
    payloads: list[Any],
    options: dict[str, Any],
    says: str,
    dsn: str,
    database: Connection,
) -> None:
    async with with_handlers(dsn) as app:
        with pytest.raises(ConfigurationError, match=says) as refusal:
            await app.enqueue_many(kind, payloads, **options)
    assert "\n" not in str(refusal.value)
    assert await stored(database) == []


async def test_wrong_values_are_refused_before_postgres_is_asked() -> None:
    app = with_handlers("postgresql://nobody@localhost:1/nowhere")
    with pytest.raises(ConfigurationError, match="does not fit picture"):
        await app.enqueue_many("picture", [{}])


@pytest.mark.parametrize(
    "payloads",
    [["12", "34"], [NewJob("k", "1234"), NewJob("k", "5678")], [NewJob("k", "1234"), "12"]],
)
async def test_too_much_for_one_call_is_refused(
    payloads: list[Any], dsn: str, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_handlers(dsn) as app:
        monkeypatch.setattr(new_jobs, "MOST_BYTES_AT_ONCE", 8)
        await app.enqueue_many("anything", payloads)
        monkeypatch.setattr(new_jobs, "MOST_BYTES_AT_ONCE", 7)
        with pytest.raises(
            EnqueueError, match="8 bytes of payloads at once are too many: send at most 7 a call"
        ):
            await app.enqueue_many("anything", payloads)
        monkeypatch.setattr(new_jobs, "MOST_AT_ONCE", 1)
        with pytest.raises(
            EnqueueError, match="2 jobs at once are too many: send at most 1 a call"
        ):
            await app.enqueue_many("anything", payloads)
    assert len(await stored(database)) == 2


async def test_the_same_keys_in_another_order_do_not_deadlock(
    dsn: str, database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    keys = [f"k{n}" for n in range(9)]
    async with runner(dsn) as app:
        other, started = await another(), list[asyncio.Task[Any]]()
        # They wait for five seconds, for which a busy machine may stand still.
        await other.execute("ALTER FUNCTION hybrid_runner.enqueue_jobs SET lock_timeout = '50s'")
        async with other.transaction():  # whoever comes to this key waits
            await other.execute("SELECT hybrid_runner.enqueue('nobody', key => 'k4')")
            for order in (keys, keys[::-1]):
                jobs = [NewJob("nobody", key=key) for key in order]
                started.append(asyncio.create_task(app.enqueue_many("nobody", jobs)))
                await until(lambda: _waiting(database, len(started)))
            await other.execute("DELETE FROM hybrid_runner.jobs")
        first, second = await asyncio.gather(*started)
    assert {answer.enqueued for answer in first} == {"inserted"}
    assert {answer.enqueued for answer in second} == {"exists"}
    assert [answer.id for answer in second] == [answer.id for answer in first][::-1]


async def _waiting(database: Connection, sessions: int) -> bool:
    waiting = await database.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname ="
        " current_database()"
    )
    return bool(waiting == sessions)


async def test_jobs_with_keys_are_due_in_the_order_in_which_they_were_given(
    dsn: str, database: Connection
) -> None:
    keys = ["c", "a", None, "d", "b", None]
    async with runner(dsn) as app:
        await app.enqueue_many("nobody", [NewJob("nobody", key=key) for key in keys])
    rows = await database.fetch("SELECT key FROM hybrid_runner.jobs ORDER BY run_at, id")
    assert [row[0] for row in rows] == keys
