"""Handlers that could not work are refused where they are declared, in one line that says what to
write instead.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Job, Runner, Snooze, State
from tests.support.waiting import equals, until
from tests.support.working import outcome, runner, working
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


def test_what_yields_is_refused() -> None:
    def generator(payload: Any) -> Any:
        yield payload

    async def async_generator(payload: Any) -> Any:
        yield payload

    for function in (generator, async_generator):
        assert "has a yield in it" in refusal(function)


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper as of tracing libraries: it returns what the function returns."""

    @functools.wraps(function)
    def inner(*arguments: Any) -> Any:
        return function(*arguments)

    return inner


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that makes a plain function of an async one."""

    @functools.wraps(function)
    def inner(*arguments: Any) -> Any:
        return asyncio.run(function(*arguments))

    return inner


async def test_an_async_def_behind_a_plain_wrapper_runs(dsn: str) -> None:
    app, ran_in = runner(dsn, handlers.app.registry), set[int]()

    async def handler(payload: Any) -> str:
        await asyncio.sleep(0)
        ran_in.add(threading.get_ident())
        return "done"

    def by_hand(payload: Any) -> Any:
        return handler(payload)

    app.job("wrapped")(traced(handler))
    app.job("in_thread", executor="thread")(traced(handler))
    app.job("by_hand")(by_hand)
    app.job("twice")(traced(traced(handler)))
    async with working(app):
        for kind in ("wrapped", "in_thread", "by_hand", "twice", "wrapped_in_process"):
            assert await (await app.enqueue(kind)).wait(120) == "done"
        assert ran_in == {threading.get_ident()}
    assert app.registry["wrapped"].executor == "async"


async def test_a_wrapper_that_runs_an_async_def_itself_is_called_in_a_thread(dsn: str) -> None:
    app = runner(dsn)

    async def handler(payload: Any) -> bool:
        return threading.current_thread() is not threading.main_thread()

    app.job("run", executor="thread")(run(handler))
    async with working(app):
        assert await (await app.enqueue("run")).wait(120) is True


async def test_a_wrapped_async_def_is_stopped_at_its_time_out(dsn: str) -> None:
    app = runner(dsn)

    async def handler(payload: Any) -> None:
        await asyncio.Event().wait()

    for executor in ("async", "thread"):
        app.job(executor, executor=executor, timeout=0.2, max_attempts=1)(traced(handler))
    async with working(app):
        for executor in ("async", "thread"):
            job = await outcome(app, executor)
            assert (job.state, job.errors[-1]["type"]) == (State.FAILED, "TimeoutError")


async def test_what_a_wrapper_returns_after_its_time_out_is_closed(dsn: str) -> None:
    """Else Python warns of a coroutine that was never awaited."""
    app, go_on, made = runner(dsn), threading.Event(), list[Coroutine[Any, Any, None]]()

    async def handler(payload: Any) -> None: ...

    def late(payload: Any) -> Any:
        go_on.wait(120)
        made.append(handler(payload))
        return made[0]

    app.job("late", executor="thread", timeout=0.2, max_attempts=1)(late)
    async with working(app):
        job = await outcome(app, "late")
        assert (job.state, job.errors[-1]["type"]) == (State.FAILED, "TimeoutError")
        go_on.set()
        await until(lambda: made and inspect.getcoroutinestate(made[0]), equals("CORO_CLOSED"))


async def test_a_generator_behind_a_wrapper_is_called_so(dsn: str) -> None:
    app = runner(dsn)

    def generator(payload: Any) -> Any:
        yield payload

    app.job("wrapped")(traced(generator))
    async with working(app):
        job = await outcome(app, "wrapped")
    assert job.errors[-1]["type"] == "ResultRefused"
    assert "the handler returned a generator" in job.errors[-1]["message"]


@pytest.mark.parametrize(
    ("returns", "name"), [(lambda _: Snooze, "Snooze"), (lambda job: job.later, "later")]
)
async def test_what_a_handler_returns_and_did_not_call_is_named(
    dsn: str, returns: Callable[[Job], Any], name: str
) -> None:
    app = runner(dsn)

    @app.job("look")
    async def look(_: Any, job: Job) -> Any:
        return returns(job)

    async with working(app):
        failed = await outcome(app, "look")
    said = f"the result is {name} itself, not called: write {name}()"
    assert failed.errors[-1]["message"] == said


# --- how a kind waits


async def remembers(payload: Any, job: Job[int]) -> None: ...


async def forgets(payload: Any, job: Job) -> None: ...


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pace": "2s"}, 'pace must be a Backoff, such as Backoff("2s", cap="30s"), not \'2s\''),
        ({"on_end": "no kind!"}, "on_end must be the name of a kind, not 'no kind!'"),
        ({"on_end": 5}, "on_end must be the name of a kind, not '5'"),
        (
            {"on_end": Runner("postgresql://nobody@localhost/x").job("clean")(forgets)},
            "write on_end='clean'",
        ),
        ({"on_end": "k"}, "its on_end is itself, and would follow itself for ever"),
        ({"max_snoozes": -1}, "max_snoozes must be 0 to 2147483647, not -1"),
        ({"max_snoozes": True}, "max_snoozes must be 0 to 2147483647, not True"),
        ({"max_snoozes": 1.5}, "max_snoozes must be 0 to 2147483647, not 1.5"),
        ({"max_duration": 0}, "max_duration must be more than zero"),
        ({"max_duration": "soon"}, "'soon' is not a duration"),
        ({"finish_within": "-1s"}, "'-1s' is not a duration"),
        ({"finish_within": timedelta(0)}, "finish_within must be more than zero"),
        ({"data": forgets}, "data must be a type, such as a pydantic model, not <function forgets"),
        ({"data": object()}, "its data type <object object"),
        ({"data": threading.Lock}, "is none that JSON can be read into"),
    ],
)
def test_what_says_how_a_kind_waits_is_refused_if_it_cannot_be(
    options: dict[str, Any], says: str
) -> None:
    """B5: in one line, where the handler is declared."""
    assert says in refusal(forgets, **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"timeout": "soon"}, "timeout: 'soon' is not a duration"),
        ({"keep_failed": -1}, "keep_failed: duration -1 is out of range"),
        ({"max_attempts": "3"}, "max_attempts must be 1 to 1000, not '3'"),
        ({"max_attempts": 1.5}, "max_attempts must be 1 to 1000, not 1.5"),
        ({"max_attempts": True}, "max_attempts must be 1 to 1000, not True"),
        ({"retry": "1s"}, 'retry must be a RetryPolicy, such as RetryPolicy("1s", cap="5m"), not'),
        ({"queue": 3}, "'3' is not a queue: use 1 to 48 letters"),
        ({"queue": None}, "None is not a queue: use 1 to 48 letters"),
    ],
)
def test_any_other_option_that_cannot_be_is_named(options: dict[str, Any], says: str) -> None:
    assert says in refusal(forgets, **options)


def test_a_memory_with_two_types_is_refused() -> None:
    """B3: the handler would be given another one than it says."""
    said = refusal(remembers, data=str)
    assert "its data is str, and its handler takes a Job[int]: write the same type" in said
    Runner("postgresql://nobody@localhost/never-opened").job("k", data=int)(remembers)
