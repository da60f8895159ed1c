"""What `@app.job(…)` makes of a function: its kind, or one line that says why it cannot be one."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Coroutine
from datetime import timedelta
from types import UnionType
from typing import Any, Protocol, Union, overload

from pydantic import PydanticUserError, TypeAdapter

from hybrid_runner.durations import Duration, parse_positive
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.job import Job
from hybrid_runner.handlers.json_type import JsonType
from hybrid_runner.handlers.kind import (
    HANDLER_OUTCOMES,
    NAME,
    PLAIN_TYPES,
    Executor,
    JobKind,
    Limits,
    P,
    R,
    check_queue,
)
from hybrid_runner.model.jobs import Keep
from hybrid_runner.model.outcomes import HandlerOutcome
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.policy.rules import Budgets, Rules
from hybrid_runner.waiting.backoff import Backoff
from hybrid_runner.waiting.budgets import check_budgets


class JobDecorator(Protocol):
    """What `Runner.job(...)` returns: decorates handlers of (payload) or (payload, job).

    R is the type of their results, without outcomes.
    """

    @overload
    def __call__(
        self, function: Callable[[P], Coroutine[Any, Any, R | HandlerOutcome]], /
    ) -> JobKind[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[[P, Job[Any]], Coroutine[Any, Any, R | HandlerOutcome]], /
    ) -> JobKind[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R | HandlerOutcome], /) -> JobKind[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[[P, Job[Any]], R | HandlerOutcome], /
    ) -> JobKind[P, R]: ...


def make_kind(
    function: Callable[..., Any],
    *,
    name: str,
    queue: str,
    executor: Executor | None,
    max_attempts: int,
    timeout: timedelta | None,
    retry: RetryPolicy,
    keep: Keep = Keep(),  # noqa: B008  # frozen
    limits: Limits = "ceiling",
    data: Any = None,
    pace: Backoff = Backoff(),  # noqa: B008  # frozen
    budgets: Budgets = Budgets(),  # noqa: B008  # frozen
    on_end: str | None = None,
) -> JobKind[Any, Any]:
    """Make a kind of a handler, and check all that can be checked before a job arrives."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a kind: use 1 to 128 letters, digits and . _ : / -"
        )
    check_queue(queue)
    if type(max_attempts) is not int or not 1 <= max_attempts <= 1000:
        raise ConfigurationError(
            f"kind {name!r}: max_attempts must be 1 to 1000, not {max_attempts!r}"
        )
    if not isinstance(retry, RetryPolicy):
        raise ConfigurationError(
            f'kind {name!r}: retry must be a RetryPolicy, such as RetryPolicy("1s", cap="5m"), not'
            f" {retry!r}"
        )
    if timeout is not None and timeout <= timedelta(0):
        raise ConfigurationError(f"kind {name!r}: timeout must be more than zero")
    if limits not in ("ceiling", "default"):
        raise ConfigurationError(
            f"kind {name!r}: limits must be 'ceiling' or 'default', not {limits!r}"
        )
    _check_waiting(name, pace, on_end)
    for state, _, how_long in keep.rules(name):
        if how_long <= timedelta(0):
            raise ConfigurationError(f"kind {name!r}: keep_{state} must be more than zero")
    _refuse_generator(function, name)
    is_async = inspect.iscoroutinefunction(function)
    wraps_async = inspect.iscoroutinefunction(inspect.unwrap(function))
    executor = executor or ("async" if is_async or wraps_async else "thread")
    if executor not in ("async", "thread", "process"):
        raise ConfigurationError(
            f"kind {name!r}: executor must be 'async', 'thread' or 'process', not {executor!r}"
        )
    _check_importable(function, name, executor)
    # A plain def around an async def may return the coroutine, or may run it itself.
    if is_async != (executor == "async") and not (wraps_async and not is_async):
        wanted = "async def" if executor == "async" else "plain def"
        raise ConfigurationError(
            f"kind {name!r}: executor={executor!r} takes a handler written as {wanted}"
        )
    payload, result, wants_job, memory = _signature(function, name)
    memory = _memory(name, memory, data)
    return JobKind(
        name=name,
        function=function,
        queue=queue,
        executor=executor,
        max_attempts=max_attempts,
        timeout=timeout,
        rules=Rules(retry, pace, budgets),
        keep=keep,
        limits=limits,
        wants_job=wants_job,
        payload=_json_type(payload, name, "payload"),
        result=None if result is Any or result is object else _json_type(result, name, "result"),
        plain=payload is Any or payload is object,
        fitting=_fitting(result),
        memory=None if memory is Any else _json_type(memory, name, "data"),
        memory_type=_shown(memory),
        on_end=on_end,
        returns="None" if result is type(None) else inspect.formatannotation(result),
    )


def _refuse_generator(function: Callable[..., Any], name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            f"kind {name!r}: its handler has a yield in it, and nobody would read what it yields:"
            " return a list, or report with job.progress(…)"
        )


def make_budgets(
    max_snoozes: int | None, max_duration: Duration | None, finish_within: Duration | None
) -> Budgets:
    """ConfigurationError for one that cannot be, as `enqueue` and SQL say it."""
    budgets = Budgets(
        max_snoozes,
        None if max_duration is None else parse_positive("max_duration", max_duration),
        None if finish_within is None else parse_positive("finish_within", finish_within),
    )
    check_budgets(budgets.max_snoozes, budgets.max_duration, budgets.finish_within)
    return budgets


def _check_waiting(name: str, pace: object, on_end: object) -> None:
    if not isinstance(pace, Backoff):
        raise ConfigurationError(
            f'kind {name!r}: pace must be a Backoff, such as Backoff("2s", cap="30s"), not {pace!r}'
        )
    if on_end is None:
        return
    if isinstance(on_end, JobKind):
        raise ConfigurationError(
            f"kind {name!r}: on_end must be the name of a kind: write on_end={on_end.name!r}"
        )
    if not isinstance(on_end, str) or not NAME.fullmatch(on_end):
        raise ConfigurationError(
            f"kind {name!r}: on_end must be the name of a kind, not {str(on_end)[:60]!r}"
        )
    if on_end == name:
        raise ConfigurationError(
            f"kind {name!r}: its on_end is itself, and would follow itself for ever: name another"
            " kind"
        )


def _memory(name: str, annotated: Any, data: Any) -> Any:
    """The type of the memory: that of `Job[…]` in the signature, or of `data=…`."""
    if data is None:
        return annotated
    if inspect.isfunction(data):
        raise ConfigurationError(
            f"kind {name!r}: data must be a type, such as a pydantic model, not {repr(data)[:60]}"
        )
    if annotated is not Any and annotated != data:
        raise ConfigurationError(
            f"kind {name!r}: its data is {_shown(data)}, and its handler takes a"
            f" Job[{_shown(annotated)}]: write the same type in both places"
        )
    return data


def _signature(function: Callable[..., Any], name: str) -> tuple[Any, Any, bool, Any]:
    """Of payload, result and memory the type; and whether the handler takes a job."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ConfigurationError(
            f"kind {name!r}: its annotations cannot be read: {error}"
        ) from error
    signature = inspect.signature(function).parameters.values()
    parameters = [
        p
        for p in signature
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        and (p.default is p.empty or p.name == "job")
    ]
    named = [p.name for p in signature if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if not 1 <= len(parameters) <= 2 or named:
        raise ConfigurationError(f"kind {name!r}: a handler takes (payload) or (payload, job)")
    return (
        hints.get(parameters[0].name, Any),
        _without_outcomes(hints.get("return", Any)),
        len(parameters) == 2,
        _memory_of(hints.get(parameters[1].name)) if len(parameters) == 2 else Any,
    )


def _shown(annotation: Any) -> str:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return inspect.formatannotation(annotation)


def _memory_of(job: Any) -> Any:
    """State, of `Job[State]`."""
    arguments = typing.get_args(job)
    return arguments[0] if typing.get_origin(job) is Job and arguments else Any


def _check_importable(function: Callable[..., Any], name: str, executor: Executor) -> None:
    """ConfigurationError for a method, and for what a process cannot import."""
    path = getattr(function, "__qualname__", "").split(".")
    first = next(iter(inspect.signature(function).parameters), "")
    if len(path) > 1 and path[-2] != "<locals>" and first in ("self", "cls"):
        raise ConfigurationError(
            f"kind {name!r}: {'.'.join(path[-2:])} is a method, and a worker has no {first} to call"
            " it with: use a function outside the class, or a staticmethod"
        )
    if executor != "process":
        return
    what = (
        "has no name"
        if not path[-1]
        else (
            "is a lambda"
            if path[-1] == "<lambda>"
            else (
                "is defined inside a function"
                if "<locals>" in path
                else "is in a program without a file"
                if _is_without_file(function)
                else ""
            )
        )
    )
    if what:
        raise ConfigurationError(
            f'kind {name!r}: its handler {what}, and executor="process" imports handlers by name: '
            "define it with def at the top of a module"
        )


def _is_without_file(function: Callable[..., Any]) -> bool:
    return function.__module__ == "__main__" and not hasattr(sys.modules["__main__"], "__file__")


def _fitting(result: Any) -> frozenset[type]:
    """The types of a return annotation whose values need no validation."""
    parts = (
        typing.get_args(result) if typing.get_origin(result) in (Union, UnionType) else (result,)
    )
    known = {part for part in parts if isinstance(part, type) and part in PLAIN_TYPES}
    known |= {
        typing.get_origin(part)
        for part in parts
        if part in (list[Any], dict[Any, Any], dict[str, Any])
    }
    if len(known) < len(parts):  # JSON of one part may be read as another: text as bytes
        known &= {type(None)}
    return frozenset(known)


def _without_outcomes(result: Any) -> Any:
    if result in HANDLER_OUTCOMES:
        return Any
    if typing.get_origin(result) in (Union, UnionType):
        kept = tuple(part for part in typing.get_args(result) if part not in HANDLER_OUTCOMES)
        return Union[kept] if kept else Any  # noqa: UP007  # built at run time
    return result


def _json_type(annotation: Any, name: str, what: str) -> JsonType:
    try:
        json_type = JsonType(TypeAdapter(annotation))
    except PydanticUserError as error:
        raise ConfigurationError(
            f"kind {name!r}: its {what} type {annotation!r} is none that JSON can be read into: "
            "use a pydantic model, a dataclass, a dict or Any"
        ) from error
    if json_type.features.trouble is not None:
        shown = inspect.formatannotation(annotation)
        raise ConfigurationError(
            f"kind {name!r}: its {what} type {shown} cannot make the way as JSON:"
            f" {json_type.features.trouble}"
        )
    return json_type
