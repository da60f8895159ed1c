"""What fits its annotation is written so that it reads back: results for `wait`, payloads for
handlers.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, ConfigDict, Field, Json, computed_field

from hybrid_runner import ConfigurationError, RetryPolicy, State
from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.kind import JobKind
from tests.support.working import runner, working


class Aliased(BaseModel):
    order_id: int = Field(alias="orderId")


class WrittenOtherwise(BaseModel):
    order_id: int = Field(validation_alias="orderId", serialization_alias="id")
    model_config = ConfigDict(populate_by_name=True)


class WrittenOtherwiseIfAtAll(BaseModel):
    order_id: int | None = Field(default=None, serialization_alias="id")


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field  # type: ignore[prop-decorator]  # as pydantic's own documentation writes it
    @property
    def area(self) -> int:
        return self.width**2


class Excluded(BaseModel):
    name: str
    secret: str = Field(default="", exclude=True)


class Unreadable(BaseModel):
    name: str
    secret: str = Field(exclude=True)


class Nested(BaseModel):
    settings: Json[dict[str, int]]
    orders: list[Aliased]


CASES = [
    (Aliased, Aliased(orderId=3)),
    (WrittenOtherwise, WrittenOtherwise.model_validate({"orderId": 3})),
    (WrittenOtherwiseIfAtAll, WrittenOtherwiseIfAtAll(order_id=3)),
    (Computed, Computed(width=3)),
    (Excluded, Excluded(name="a")),
    (Nested, Nested.model_validate({"settings": '{"a": 1}', "orders": [{"orderId": 3}]})),
    (dict[str, Aliased], {"a": Aliased(orderId=3)}),
    (Aliased | None, Aliased(orderId=3)),
    (Decimal, Decimal("1.10")),
    (bytes, b"ab"),
    (timedelta, timedelta(seconds=90)),
    (Path, Path("a/b")),
    (set[Decimal], {Decimal("1.10")}),
    (tuple[int, Path], (1, Path("a"))),
]


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


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=repr)
def test_a_result_that_fits_reads_back_as_it_was(annotation: Any, value: Any) -> None:
    kind = kind_of(result=annotation)
    assert kind.decode_result(kind.encode_result(value)) == value


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=repr)
def test_a_payload_that_fits_reads_back_as_it_was(annotation: Any, value: Any) -> None:
    kind = kind_of(payload=annotation)
    assert [kind.decode(text) for text in kind.encode_all([value, value])] == [value, value]


def test_payloads_are_written_as_the_json_schema_says() -> None:
    kind = kind_of(payload=Aliased)
    assert orjson.loads(kind.encode(Aliased(orderId=3))) == {"orderId": 3}
    assert set(kind.payload.json_schema()["properties"]) == {"orderId"}


def test_a_payload_that_no_worker_could_read_is_refused_when_it_is_enqueued() -> None:
    with pytest.raises(ConfigurationError, match="does not read back: secret: Field required"):
        kind_of(payload=Unreadable).encode(Unreadable(name="a", secret="b"))


async def test_a_result_that_does_not_read_back_completes_its_job_and_is_warned_of_once(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "hybrid_runner")
    app = runner(dsn)

    @app.job("half")
    async def half(_: Any) -> Unreadable:
        return Unreadable(name="a", secret="b")

    async with working(app):
        for _ in range(2):
            handle = await app.enqueue(half, {})
            with pytest.raises(ConfigurationError, match="does not fit the return annotation"):
                await handle.wait(20)
            job = await handle.get()
            assert (job.state, job.result) == (State.COMPLETED, {"name": "a"})
    [line] = [r for r in caplog.records if getattr(r, "event", "") == "job.result_unreadable"]
    assert "results of half cannot be read back" in line.getMessage()


async def test_a_result_with_aliases_completes_its_job_and_is_read_by_whoever_waits(
    dsn: str,
) -> None:
    app = runner(dsn)

    @app.job("order")
    async def order(payload: Aliased) -> Aliased:
        return payload

    async with working(app):
        handle = await app.enqueue(order, Aliased(orderId=7))
        assert await handle.wait(20) == Aliased(orderId=7)
