"""Kinds of jobs and their handlers."""

from __future__ import annotations

import inspect
import logging
import re
import sys
import typing
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from types import UnionType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, Union, overload

import orjson
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.job import Job
from hybrid_runner.jsontext import NotStorable, check, decode, encode, refuse_nan
from hybrid_runner.model.jobs import Keep, State
from hybrid_runner.model.outcomes import Completed, HandlerOutcome, Refused
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.worker")

Executor = Literal["async", "thread", "process"]
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")
QUEUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,47}")
_OUTCOMES = typing.get_args(HandlerOutcome)
_PLAIN = frozenset({type(None), bool, int, float, str, dict, list})
"""Types whose values, as JSON, can be read back as the same type."""

_NOTHING = Completed("null")

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True)
class JobKind(Generic[P, R]):
    """One kind of job: its name, its handler and how to run it. Calling it calls the handler."""

    name: str
    function: Callable[..., Any]
    queue: str
    executor: Executor
    max_attempts: int
    timeout: timedelta | None
    retry: RetryPolicy
    wants_job: bool
    payload: TypeAdapter[Any]
    result: TypeAdapter[Any] | None
    keep: Keep
    plain: bool = field(default=False)
    """The payload may be any JSON and needs no validation."""
    fitting: frozenset[type] = frozenset()
    """Results of these types fit the return annotation, whatever they contain."""
    returns: str = "Any"
    """The return annotation, without outcomes."""
    warned: set[str] = field(default_factory=set, compare=False, repr=False)
    """Written here: what has been warned of, once for each kind."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler directly, as in a unit test."""
        return self.function(*args, **kwargs)

    def decode(self, text: str) -> Any:
        """The payload as the handler's type; ValidationError when it does not fit."""
        return orjson.loads(text) if self.plain else self.payload.validate_json(text)

    def encode(self, value: Any) -> str:
        """The payload as JSON text; ConfigurationError when it does not fit."""
        return self.encode_all([value])[0]

    def encode_all(self, values: Iterable[Any]) -> list[str]:
        """The payloads as JSON texts, in order; ConfigurationError when one does not fit."""
        try:
            if self.plain:
                return [encode(value, "the payload") for value in values]
            # The methods of TypeAdapter do the same and take several times as long.
            validate, dump = self.payload.validator.validate_python, self.payload.serializer.to_json
            fitted = [validate(value) for value in values]
            if not fitted:
                return []
            written = _write(self.payload, fitted[0])  # the others are written as the first one
            if written.unreadable is not None:
                raise ConfigurationError(
                    f"the payload of {self.name}, written as JSON, does not read back:"
                    f" {explain(written.unreadable)}"
                )
            texts = [
                written.text,
                *(dump(v, by_alias=written.by_alias, round_trip=True) for v in fitted[1:]),
            ]
            return [check(text, "the payload") for text in texts]
        except ValidationError as error:
            raise ConfigurationError(
                f"the payload does not fit {self.name}: {explain(error)}"
            ) from None
        except (NotStorable, ValueError, TypeError) as error:
            raise ConfigurationError(f"{self.name}: {error}") from None

    def as_outcome(self, returned: object) -> Completed | HandlerOutcome | Refused:
        """What the handler returned, as an outcome."""
        if returned is None and (
            self.result is None or type(None) in self.fitting
        ):  # most handlers
            return _NOTHING
        if type(returned) not in _PLAIN and isinstance(
            returned, HandlerOutcome
        ):  # the first is quicker
            return returned
        try:
            return Completed(self.encode_result(returned))
        except NotStorable as error:  # another attempt would end the same way
            return Refused("ResultRefused", str(error))

    def encode_result(self, value: Any) -> str:
        """A result as JSON text; NotStorable when it is no JSON or does not fit the return
        annotation.
        """
        if self.result is None or type(value) in self.fitting:
            return "null" if value is None else encode(value, "the result")
        try:
            fitted = self.result.validator.validate_python(value)
        except ValidationError:
            return self._encode_by_its_json(self.result, value)
        try:
            written = _write(self.result, fitted)
        except (ValueError, TypeError, RecursionError) as error:
            raise NotStorable(f"the result cannot be written as JSON: {error}") from None
        refuse_nan(fitted, written.text, "the result")
        if written.unreadable is not None and not self.warned:
            self.warned.add("result")
            log.warning(
                "results of %s cannot be read back as its return annotation -> %s, and wait() will"
                " say so; its jobs complete: %s",
                self.name,
                self.returns,
                explain(written.unreadable, ""),
                extra=log_event("job.result_unreadable", kind=self.name),
            )
        return check(written.text, "the result")

    def _encode_by_its_json(self, result: TypeAdapter[Any], value: Any) -> str:
        """A value that is none of the annotation, but whose JSON may be: a dataclass for a dict."""
        text = "null" if value is None else encode(value, "the result")
        try:
            result.validator.validate_json(text)
        except ValidationError as error:
            raise NotStorable(
                f"the result of {self.name} does not fit its return annotation -> {self.returns}:"
                f" {explain(error, '')}"
            ) from None
        return text

    def decode_result(self, text: str | None) -> Any:
        """A stored result as the handler's return type."""
        if text is None or self.result is None:
            return decode(text)
        try:
            return self.result.validate_json(text)
        except ValidationError as error:
            raise ConfigurationError(
                f"the stored result does not fit the return annotation of {self.name} ->"
                f" {self.returns}: {explain(error, '')}"
            ) from None


class _Written(NamedTuple):
    text: bytes
    by_alias: bool
    unreadable: ValidationError | None
    """Why it does not read back."""


def _write(adapter: TypeAdapter[Any], value: Any) -> _Written:
    """The JSON of a value that fits: by alias, as the JSON schema says, unless only field names
    read back.
    """
    tried = list[_Written]()
    for by_alias in (True, False):
        text = adapter.serializer.to_json(value, by_alias=by_alias, round_trip=True, warnings=False)
        if tried and tried[0].text == text:
            break
        try:
            read = adapter.validator.validate_json(text)
        except ValidationError as error:
            tried.append(_Written(text, by_alias, error))
            continue
        tried.append(_Written(text, by_alias, None))
        if read == value:
            return tried[-1]
    return next((written for written in tried if written.unreadable is None), tried[0])


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
        self, function: Callable[[P, Job], Coroutine[Any, Any, R | HandlerOutcome]], /
    ) -> JobKind[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], R | HandlerOutcome], /) -> JobKind[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P, Job], R | HandlerOutcome], /) -> JobKind[P, R]: ...


class Registry:
    """The kinds that this process knows."""

    def __init__(self) -> None:
        self._kinds: dict[str, JobKind[Any, Any]] = {}

    def add(self, kind: JobKind[Any, Any]) -> None:
        """Make a kind known; ConfigurationError when its name is taken."""
        if kind.name in self._kinds:
            raise ConfigurationError(
                f"kind {kind.name!r} has two handlers: give one of them another name"
            )
        self._kinds[kind.name] = kind

    def __getitem__(self, name: str) -> JobKind[Any, Any]:
        return self._kinds[name]

    def get(self, name: str) -> JobKind[Any, Any] | None:
        """The kind of that name, if this process knows it."""
        return self._kinds.get(name)

    def __iter__(self) -> Iterator[JobKind[Any, Any]]:
        return iter(self._kinds.values())

    def __len__(self) -> int:
        return len(self._kinds)

    def keeps(self, usual: Keep) -> list[tuple[State, str, timedelta]]:
        """How long ended jobs are kept, as (state, kind, how long); `usual` is for kinds that say
        nothing, under the name ''.
        """
        return [*usual.rules(""), *(rule for kind in self for rule in kind.keep.rules(kind.name))]


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
) -> JobKind[Any, Any]:
    """Make a kind of a handler, and check all that can be checked before a job arrives."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a kind: use 1 to 128 letters, digits and . _ : / -"
        )
    check_queue(queue)
    if not 1 <= max_attempts <= 1000:
        raise ConfigurationError(
            f"kind {name!r}: max_attempts must be 1 to 1000, not {max_attempts}"
        )
    if timeout is not None and timeout <= timedelta(0):
        raise ConfigurationError(f"kind {name!r}: timeout must be more than zero")
    for state, _, how_long in keep.rules(name):
        if how_long <= timedelta(0):
            raise ConfigurationError(f"kind {name!r}: keep_{state} must be more than zero")
    is_async = inspect.iscoroutinefunction(function)
    executor = executor or ("async" if is_async else "thread")
    if executor not in ("async", "thread", "process"):
        raise ConfigurationError(
            f"kind {name!r}: executor must be 'async', 'thread' or 'process', not {executor!r}"
        )
    _check_importable(function, name, executor)
    if is_async != (executor == "async"):
        wanted = "async def" if executor == "async" else "plain def"
        raise ConfigurationError(
            f"kind {name!r}: executor={executor!r} takes a handler written as {wanted}"
        )
    payload, result, wants_job = _signature(function, name)
    return JobKind(
        name=name,
        function=function,
        queue=queue,
        executor=executor,
        max_attempts=max_attempts,
        timeout=timeout,
        retry=retry,
        keep=keep,
        wants_job=wants_job,
        payload=_adapter(payload, name, "payload"),
        result=None if result is Any or result is object else _adapter(result, name, "result"),
        plain=payload is Any or payload is object,
        fitting=_fitting(result),
        returns="None" if result is type(None) else inspect.formatannotation(result),
    )


def check_queue(queue: str) -> None:
    """ConfigurationError unless it is a queue's name."""
    if not QUEUE.fullmatch(queue):
        raise ConfigurationError(
            f"{queue[:60]!r} is not a queue: use 1 to 48 letters, digits and . _ : / -"
        )


def explain(error: ValidationError, whole: str = "payload") -> str:
    """The errors in one line; `whole` is the name of the value itself, empty for none."""
    errors = [
        (".".join(map(str, e["loc"])) or whole, e["msg"])
        for e in error.errors(include_input=False)[:5]
    ]
    parts = [f"{where}: {why}" if where else why for where, why in errors]
    more = error.error_count() - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _signature(function: Callable[..., Any], name: str) -> tuple[Any, Any, bool]:
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
    )


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
    known = {part for part in parts if isinstance(part, type) and part in _PLAIN}
    known |= {
        typing.get_origin(part)
        for part in parts
        if part in (list[Any], dict[Any, Any], dict[str, Any])
    }
    return frozenset(known)


def _without_outcomes(result: Any) -> Any:
    if result in _OUTCOMES:
        return Any
    if typing.get_origin(result) in (Union, UnionType):
        kept = tuple(part for part in typing.get_args(result) if part not in _OUTCOMES)
        return Union[kept] if kept else Any  # noqa: UP007  # built at run time
    return result


def _adapter(annotation: Any, name: str, what: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise ConfigurationError(
            f"kind {name!r}: its {what} type {annotation!r} is none that JSON can be read into: "
            "use a pydantic model, a dataclass, a dict or Any"
        ) from error
