"""Handlers that could not work are refused where they are declared, in one line that says what to
write instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Runner
from tests.worker import handlers


def refusal(function: Callable[..., Any], **options: Any) -> str:
    """What the decorator says to it."""
    app = Runner("postgresql://nobody@localhost/never-opened")
    with pytest.raises(ConfigurationError) as refused:
        app.job("k", **options)(function)
    assert "\n" not in str(refused.value)
    return str(refused.value)


class Tasks:
    async def method(self, payload: Any) -> None: ...

    def plain(self, payload: Any) -> None: ...

    @staticmethod
    async def static(payload: Any) -> None: ...

    @classmethod
    async def of_class(cls, payload: Any) -> None: ...


@functools.wraps(handlers.add_in_process.function)
def decorated(payload: Any) -> Any:
    return payload


def test_a_method_is_refused() -> None:
    assert "Tasks.method is a method, and a worker has no self to call it with" in refusal(
        Tasks.method
    )
    assert "Tasks.plain is a method" in refusal(Tasks.plain)
    assert "Tasks.plain is a method" in refusal(Tasks.plain, executor="process")


def test_what_is_called_without_self_is_taken() -> None:
    app = Runner("postgresql://nobody@localhost/never-opened")
    for number, function in enumerate((Tasks.static, Tasks.of_class, Tasks().method)):
        app.job(str(number))(function)
    assert len(app.registry) == 3


def test_a_process_takes_nothing_that_it_cannot_import() -> None:
    def closure(payload: Any) -> None: ...

    def partly(more: Any, payload: Any) -> None: ...

    assert "its handler is a lambda" in refusal(lambda payload: payload, executor="process")
    assert "its handler is defined inside a function" in refusal(closure, executor="process")
    assert "its handler has no name" in refusal(functools.partial(partly, 1), executor="process")


def test_a_process_takes_no_function_of_a_program_without_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A module that was read from stdin: processes cannot import it."""
    import __main__  # noqa: PLC0415  # the program that runs these tests

    def handler(payload: Any) -> None: ...

    handler.__module__, handler.__qualname__ = "__main__", "handler"
    monkeypatch.delattr(__main__, "__file__", raising=False)
    assert "its handler is in a program without a file" in refusal(handler, executor="process")


def test_elsewhere_lambdas_and_closures_work() -> None:
    app = Runner("postgresql://nobody@localhost/never-opened")

    @app.job("closure")
    async def closure(payload: Any) -> None: ...

    app.job("lambda")(lambda payload: payload)
    app.job("wrapped", executor="process")(decorated)
    assert len(app.registry) == 3
