"""A result is held against the handler's return annotation when the job ends, not when somebody
waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from hybrid_runner import ConfigurationError, Fail, Job, RetryPolicy, Snooze, State
from hybrid_runner.handlers.declaration import make_kind
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.jsontext import NotStorable
from hybrid_runner.storage.connections.connection import Connection
from tests.support.working import outcome, runner, working
from tests.worker import handlers


class Size(BaseModel):
    width: int


@dataclass
class Area:
    width: int
    height: int


class Named(TypedDict):
    name: str


def kind_returning(annotation: Any) -> JobKind[Any, Any]:
    """A kind whose handler says that it returns this."""

    def handler(payload: Any) -> Any: ...

    if annotation is not ...:
        handler.__annotations__["return"] = annotation
    return make_kind(
        handler,
        name="k",
        queue="default",
        executor=None,
        max_attempts=5,
        timeout=None,
        retry=RetryPolicy(),
    )


@pytest.mark.parametrize(
    ("annotation", "result"),
    [
        (..., object.__doc__),
        (Any, {"a": 1}),
        (object, 1),
        (None, None),
        (int, 3),
        (bool, True),
        (str, "a"),
        (float, 1.5),
        (float, 1),
        (dict, {1: "a"}),
        (list, [1, "a"]),
        (dict[str, int], {"a": 1}),
        (dict[int, str], {1: "a"}),
        (list[Any], []),
        (list[tuple[int, str]], [(1, "a")]),
        (Size, Size(width=1)),
        (Size, {"width": 1}),
        (Area, Area(1, 2)),
        (Named, {"name": "a"}),
        (Size | None, None),
        (int | Snooze, 3),
        (int | None | Fail, None),
        (set[int], {1, 2}),
        (Annotated[int, ["cannot be hashed"]], 3),
    ],
)
def test_what_fits_its_annotation_is_taken(annotation: Any, result: Any) -> None:
    kind = kind_returning(annotation)
    kind.decode_result(kind.encode_result(result))


@pytest.mark.parametrize(
    ("annotation", "result", "why"),
    [
        (int, "a string", "-> int: Input should be a valid integer"),
        (None, 3, "-> None: Input should be null"),
        (dict, [1], "-> dict: Input should be an object"),
        (dict[str, int], {"a": "x"}, "-> dict[str, int]: a: Input should be a valid integer"),
        (Size, {"height": 1}, "width: Field required"),
        (int | Snooze, "x", "-> int: "),
        (str, None, "-> str: Input should be a valid string"),
    ],
)
def test_what_does_not_fit_its_annotation_is_called_so(
    annotation: Any, result: Any, why: str
) -> None:
    kind = kind_returning(annotation)
    with pytest.raises(NotStorable) as refused:
        kind.encode_result(result)
    assert str(refused.value).startswith("the result of k does not fit its return annotation -> ")
    assert why in str(refused.value)


@pytest.mark.parametrize("kind", ["miscount", "miscount_in_thread", "miscount_in_process"])
async def test_a_result_that_does_not_fit_fails_the_job_at_its_first_attempt(
    dsn: str, kind: str
) -> None:
    app = runner(dsn, handlers.app.registry)

    @app.job("miscount")
    async def miscount(_: Any) -> int:
        return "three"  # type: ignore[return-value]  # as somebody without a type checker would

    @app.job("miscount_in_thread")
    def miscount_in_thread(_: Any) -> int:
        return "three"  # type: ignore[return-value]

    async with working(app):
        job = await outcome(app, kind)
    assert (job.state, job.attempt, job.errors[0]["type"]) == (State.FAILED, 1, "ResultRefused")
    expected = f"the result of {kind} does not fit its return annotation -> int: Input should be"
    assert expected in job.errors[0]["message"]


async def test_a_handler_cannot_complete_its_job_with_a_result_that_does_not_fit(
    dsn: str, database: Connection
) -> None:
    app = runner(dsn)
    said: list[str] = []

    @app.job("own")
    async def own(_: Any, job: Job) -> int:
        try:
            await job.complete("three", connection=database)
        except ConfigurationError as error:
            said.append(str(error))
        return 3

    async with working(app):
        assert (await outcome(app, "own")).result == 3
    assert "does not fit its return annotation -> int" in said[0]


def test_plain_results_are_not_looked_at() -> None:
    """Without an annotation no result is checked."""
    for annotation, result in (
        (int, 3),
        (dict[str, Any], {"a": 1}),
        (None, None),
        (int | None, 3),
        (..., 3),
        (Any, 3),
    ):
        kind = kind_returning(annotation)
        assert kind.result is None or type(result) in kind.fitting

    def checked(result: object) -> bool:
        return type(result) not in kind_returning(list[int]).fitting

    assert checked([1])
