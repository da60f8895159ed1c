"""A payload reaches its handler as it was sent, and a result whoever waits for it; or it is refused
where it is declared or enqueued, in one line, and never at the worker.
"""

from __future__ import annotations

import asyncio
import logging
import math
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from hybrid_runner import ConfigurationError, JobFailed, NewJob, RetryPolicy, State
from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.jsontext import NotStorable
from hybrid_runner.storage.connections.connection import Connection
from tests.support import typed_values
from tests.support.typed_values import (
    ALONE,
    Aliased,
    Area,
    Excluded,
    ExcludedRequired,
    Numbers,
    OnlyForInit,
    Plain,
    WholeHidden,
    Wider,
    WithOpenSecret,
    WithSecret,
    everywhere,
)
from tests.support.working import outcome, runner, working


def kind_of(payload: Any = Any, result: Any = Any) -> JobKind[Any, Any]:
    """A kind whose handler has these annotations."""

    def handler(payload: Any) -> Any: ...

    handler.__annotations__.update({"payload": payload, "return": result})
    return make_kind(
        handler,
        name="k",
        queue="default",
        executor=None,
        max_attempts=5,
        timeout=None,
        retry=RetryPolicy(),
    )


def is_same(one: Any, other: Any) -> bool:
    """Equal, where Python can say so; what only JSON would tell apart counts by its JSON."""
    if bool(one == other):
        return True
    match one:
        case _ if type(one) is not type(other):
            return False
        case float():
            return math.isnan(one) and math.isnan(other)
        case datetime() if one.tzinfo and other.tzinfo:  # in the hour that the clocks repeat
            return bool(one.astimezone(UTC) == other.astimezone(UTC))
        case BaseModel():
            return all(is_same(getattr(one, n), getattr(other, n)) for n in type(one).model_fields)
        case list():
            return len(one) == len(other) and all(map(is_same, one, other))
        case dict():
            return one.keys() == other.keys() and all(is_same(one[n], other[n]) for n in one)
        case _ if hasattr(one, "__dataclass_fields__"):
            return is_same(vars(one), vars(other))
    return False


def refused(**annotations: Any) -> str:
    """What the decorator says; empty when it says nothing."""
    try:
        kind_of(**annotations)
    except ConfigurationError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
    return said


async def as_stored(database: Connection, texts: list[str]) -> list[str]:
    """As jsonb writes them: it knows numbers by value, and orders names anew."""
    rows = await database.fetch("SELECT t::jsonb::text FROM unnest($1::text[]) AS t", texts)
    return [row[0] for row in rows]


HOLDS_ANY = (
    "{'a': (1, 2)}",
    "{'at': datetime.datetime(",
    "{'p': Plain(",
    "b=(1, 2)",
)
"""Values of `Any` that arrive as what JSON makes of them: tuples as lists, times as text."""


async def test_what_is_accepted_arrives_as_it_was_sent(unchanged: Connection) -> None:
    accepted = []
    for name, annotation, value in everywhere():
        if refused(payload=annotation):
            continue
        kind = kind_of(payload=annotation)
        try:
            text = kind.encode(value)
        except ConfigurationError as error:
            assert "\n" not in str(error), name  # noqa: PT017  # most are accepted
            continue
        accepted.append((name, kind, kind.payload.fit(value), text))
    stored = await as_stored(unchanged, [text for *_, text in accepted])
    for (name, kind, sent, _), text in zip(accepted, stored, strict=True):
        got = kind.decode(text)  # never a ValidationError
        assert is_same(sent, got) or any(part in repr(sent) for part in HOLDS_ANY), (name, got)
    assert len(accepted) > 900


async def test_what_can_be_written_of_results_comes_back_as_it_was_or_is_warned_of(
    unchanged: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    done = []
    for name, annotation, value in everywhere():
        if refused(result=annotation):
            continue
        kind = kind_of(result=annotation)
        try:
            fitted = kind.result.fit(value) if kind.result else value
        except ValidationError:
            continue
        caplog.clear()
        try:
            text = kind.encode_result(fitted)
        except NotStorable as error:
            assert "\n" not in str(error), name  # noqa: PT017  # most are accepted
            continue
        done.append((name, kind, fitted, text, bool(caplog.records)))
    stored = await as_stored(unchanged, [text for _, _, _, text, _ in done])
    for (name, kind, sent, _, warned), text in zip(done, stored, strict=True):
        if not warned and not any(part in repr(sent) for part in HOLDS_ANY):
            assert is_same(sent, kind.decode_result(text)), name


def test_a_batch_is_looked_at_to_its_end() -> None:
    kind = kind_of(payload=Plain)
    good = Plain(url="a")
    for bad, why in (
        (Wider(url="a", height=2), "Wider would arrive as Plain"),
        (Plain.model_construct(url="a", width=None), "width: Input should be a valid integer"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            kind.encode_all([good] * 3 + [bad])
    with pytest.raises(ConfigurationError, match=r"infinity \(y\), which JSON cannot hold"):
        kind_of(payload=Numbers).encode_all([Numbers(x=1, y=2), Numbers(x=1, y=math.nan)])


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (WithSecret, "password: a secret is written as asterisks: use str"),
        (dict[str, list[WithSecret]], "password: a secret is written as asterisks"),
        (ExcludedRequired, "token: it is required and excluded from JSON"),
        (OnlyForInit, "factor: an InitVar is not written"),
    ],
)
def test_a_type_that_can_never_make_the_way_is_refused_where_it_is_declared(
    annotation: Any, why: str
) -> None:
    assert why in refused(payload=annotation)
    assert why in refused(result=annotation)


def test_a_secret_that_is_written_on_purpose_is_taken() -> None:
    kind = kind_of(payload=WithOpenSecret)
    got = kind.decode(kind.encode({"password": "hunter2"}))
    assert got.password.get_secret_value() == "hunter2"


class WithAnything(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.mark.parametrize("annotation", [Any, dict[str, Any], WithAnything])
def test_a_secret_within_what_may_be_anything_is_refused(annotation: Any) -> None:
    with pytest.raises(ConfigurationError, match="as asterisks"):
        kind_of(payload=annotation).encode({"a": [WithSecret(password=SecretStr("hunter2"))]})
    with pytest.raises(NotStorable, match="as asterisks"):
        kind_of().encode_result([WithSecret(password=SecretStr("hunter2"))])


@pytest.mark.parametrize(
    "value", [Numbers(x=math.nan), Area(1, math.inf), [{"a": Area(1, -math.inf)}]]
)
def test_nan_is_found_in_models_and_dataclasses_too(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"NaN or infinity \(.*(x|height)\)"):
        kind_of().encode(value)
    with pytest.raises(NotStorable, match=r"NaN or infinity \(.*(x|height)\)"):
        kind_of(result=Any).encode_result(value)


def test_payloads_are_written_as_the_json_schema_says() -> None:
    kind = kind_of(payload=Aliased)
    assert orjson.loads(kind.encode(Aliased(orderId=3))) == {"orderId": 3}
    assert set(kind.payload.adapter.json_schema()["properties"]) == {"orderId"}
    assert orjson.loads(kind_of().encode({"order": Aliased(orderId=3)})) == {
        "order": {"orderId": 3}
    }


async def test_whole_numbers_of_any_size_that_sql_inserts_reach_a_handler_whole(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    got = []

    @app.job("untyped")
    async def untyped(payload: Any) -> Any:
        got.append(payload)

    await database.execute(
        "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES"
        " ('untyped', '[18446744073709551615, 18446744073709551616, -9223372036854775809]'),"
        " ('untyped', to_jsonb(10::numeric ^ 300))"
    )
    async with working(app) as worker:
        await worker.idle()
        job = await outcome(app, "untyped")
    assert job.state is State.COMPLETED
    assert sorted(map(repr, got)) == sorted(
        map(repr, [[2**64 - 1, 2**64, -(2**63) - 1], 10**300, {}])
    )


async def test_typed_payloads_and_results_go_all_the_way_by_each_way_in(
    dsn: str, database: Connection
) -> None:
    """One kind for each type: enqueue, enqueue_many, NewJob and the caller's own connection."""
    app, got = runner(dsn), dict[str, list[Any]]()
    sent = dict[str, list[Any]]()
    for number, (annotation, values) in enumerate(ALONE):
        if refused(payload=annotation):
            continue
        name = f"kind{number}"
        kind = kind_of(payload=annotation)
        accepted = []
        for value in values:
            try:
                kind.encode(value)
            except ConfigurationError:
                continue
            accepted.append(value)
        if accepted:
            sent[name] = accepted
            _register(app, name, annotation, got)
    waiting = dict[str, list[Any]]()
    async with working(app):
        for name, values in sent.items():
            kind = app.registry[name]
            handles = [await app.enqueue(kind, values[0])]
            async with database.transaction():
                handles.append(await app.enqueue(name, values[-1], connection=database))
            many = await app.enqueue_many(
                name, [*values, NewJob(name, app.registry[name].encode(values[-1]))]
            )
            waiting[name] = [*handles, *(app.handle(job.id, kind) for job in many)]
        for name, handles in waiting.items():
            results = await asyncio.gather(*(handle.wait(120) for handle in handles))
            kind = app.registry[name]
            wanted = [value if kind.plain else kind.payload.fit(value) for value in sent[name]]
            assert len(got[name]) == len(results)
            if not any(part in repr(wanted) for part in HOLDS_ANY):
                for each in (*got[name], *results):
                    assert any(is_same(each, one) for one in wanted), (name, each)
    assert len(sent) > 70


def _register(app: Any, name: str, annotation: Any, got: dict[str, list[Any]]) -> None:
    async def handler(payload: Any) -> Any:
        got.setdefault(name, []).append(payload)
        return payload

    handler.__annotations__.update({"payload": annotation, "return": annotation})
    app.job(name)(handler)


async def test_a_result_that_does_not_come_back_as_it_was_completes_its_job_and_is_warned_of_once(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "hybrid_runner")
    app = runner(dsn)

    @app.job("half")
    async def half(_: Any) -> Excluded:
        return Excluded(name="a", token="t")

    @app.job("hidden")
    async def hidden(_: Any) -> WholeHidden:
        return WholeHidden(a=1)

    async with working(app):
        for _ in range(2):
            handle = await app.enqueue(half, {})
            assert await handle.wait(120) == Excluded(name="a", token="")
            unreadable = await app.enqueue(hidden, {})
            with pytest.raises(ConfigurationError, match="does not fit the return annotation"):
                await unreadable.wait(120)
            job = await unreadable.get()
            assert (job.state, job.result) == (State.COMPLETED, "hidden")
    lines = [r.getMessage() for r in caplog.records if r.event == "job.result_unreadable"]  # type: ignore[attr-defined]  # ours have it
    assert len(lines) == 2
    assert "results of half do not read back as they were" in lines[0]
    assert "token: it would arrive as another value" in lines[0]


async def test_nan_in_a_result_fails_its_job_whatever_holds_it(dsn: str) -> None:
    app = runner(dsn)

    @app.job("model")
    async def model(_: Any) -> Numbers:
        return Numbers(x=math.nan)

    @app.job("dataclass")
    async def of_dataclass(_: Any) -> Area:
        return Area(1, math.inf)

    @app.job("inside")
    async def inside(_: Any) -> dict[str, Any]:
        return {"inside": Numbers(x=math.nan)}

    async with working(app):
        for kind in (model, of_dataclass, inside):
            with pytest.raises(JobFailed, match="ResultRefused: the result contains NaN") as failed:
                await (await app.enqueue(kind, {})).wait(120)
            assert failed.value.attempts == 1


def test_every_type_of_the_list_has_a_name_of_its_own() -> None:
    """Else a value that is refused could hide behind another one."""
    assert len(list(everywhere())) > 1000
    assert typed_values.ALONE
