"""A kind of jobs: its handler, how that is run, how payloads and results are written and read."""

from __future__ import annotations

import logging
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.jsontext import NotStorable, check, decode, encode, refuse_nan
from hybrid_runner.model.jobs import Keep
from hybrid_runner.model.outcomes import Completed, HandlerOutcome, Refused
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.worker")


Executor = Literal["async", "thread", "process"]
Limits = Literal["ceiling", "default"]


NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")


QUEUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,47}")


HANDLER_OUTCOMES = typing.get_args(HandlerOutcome)


PLAIN_TYPES = frozenset({type(None), bool, int, float, str, dict, list})
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
    limits: Limits = "ceiling"
    """Whether a job may ask for more attempts or a longer time-out than these."""
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
        if type(returned) not in PLAIN_TYPES and isinstance(
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
