"""A kind of jobs: its handler, how that is run, how payloads and results are written and read."""

from __future__ import annotations

import inspect
import logging
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Literal, TypeVar, Unpack

from pydantic import ValidationError

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.json_type import JsonType, explain
from hybrid_runner.handlers.options import NEW_JOB_NAMES, NewJobOptions, given
from hybrid_runner.jsontext import NotStorable, decode, encode, read
from hybrid_runner.model.jobs import Keep, NewJob
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.model.outcomes import Completed, HandlerOutcome, Refused
from hybrid_runner.policy.rules import Rules
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


_LONGEST_SCHEMA = 32 * 1024
"""Characters of the JSON schema of a payload; Postgres prints twice as many at most."""


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
    rules: Rules
    wants_job: bool
    payload: JsonType
    result: JsonType | None
    keep: Keep
    limits: Limits = "ceiling"
    """Whether a job may ask for more attempts or a longer time-out than these."""
    plain: bool = field(default=False)
    """The payload may be any JSON and needs no validation."""
    fitting: frozenset[type] = frozenset()
    """Results of these types fit the return annotation, whatever they contain."""
    returns: str = "Any"
    """The return annotation, without outcomes."""
    memory: JsonType | None = None
    """The type of `job.data`; None: whatever JSON can hold."""
    memory_type: str = "Any"
    """Its name."""
    on_end: str | None = None
    """The kind that is stored when a job of this one ends, however it does."""
    unique: tuple[str, ...] | None = None
    """The members of the payload that make the key of a job without one, none for all of it; None:
    such a job has no key.
    """
    warned: set[str] = field(default_factory=set, compare=False, repr=False)
    """Written here: what has been warned of, once for each kind."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler directly, as in a unit test."""
        return self.function(*args, **kwargs)

    def declared(self) -> DeclaredKind:
        """What a worker writes down of it, for those who do not have its code."""
        budgets = self.rules.budgets
        schema = self.payload.schema()
        return DeclaredKind(
            self.name,
            self.queue,
            self.on_end,
            budgets.max_snoozes,
            budgets.max_duration,
            budgets.finish_within,
            schema if schema is not None and len(schema) <= _LONGEST_SCHEMA else None,
        )

    def new(self, payload: P, **options: Unpack[NewJobOptions]) -> NewJob:
        """A job of this kind that is not stored yet, as for `Fail(…, then=…)` and
        `enqueue_many`.
        """
        from hybrid_runner.handlers.new_jobs import new_job  # noqa: PLC0415  # it knows kinds

        return new_job(lambda _: None, self, payload, given(options, NEW_JOB_NAMES))

    def decode(self, text: str) -> Any:
        """The payload as the handler's type; ValidationError when it does not fit."""
        return read(text) if self.plain else self.payload.read(text)

    def encode(self, value: Any) -> str:
        """The payload as JSON text; ConfigurationError when it does not fit."""
        return self.encode_all([value])[0]

    def encode_all(self, values: Iterable[Any]) -> list[str]:
        """The payloads as JSON texts, in order; ConfigurationError when one does not fit, or would
        not reach the handler as it is.
        """
        try:
            if self.plain:
                return [encode(value, "the payload") for value in values]
            texts, changed = self.payload.write_all(values, "the payload")
        except ValidationError as error:
            raise ConfigurationError(
                f"the payload does not fit {self.name}: {explain(error)}"
            ) from None
        except (NotStorable, ValueError, TypeError) as error:
            raise ConfigurationError(f"{self.name}: {error}") from None
        if changed is not None:
            raise ConfigurationError(
                f"the payload would not reach the handler of {self.name} as it is: {changed}"
            )
        return texts

    def read_memory(self, text: str | None) -> Any:
        """The stored memory as its type; where nothing is stored, a new one of its defaults.
        ValidationError when it does not fit, or a field has no default.
        """
        if self.memory is None:
            return decode(text)
        return self.memory.read("{}" if text is None else text)

    def write_memory(self, value: Any, what: str) -> str:
        """The memory as JSON text; NotStorable when it is no JSON or does not fit its type."""
        if self.memory is None:
            return encode(value, what)
        try:
            [text], changed = self.memory.write_all([value], what)
        except ValidationError as error:
            changed = explain(error, "")
        if changed is not None:
            raise NotStorable(f"{what} does not fit {self.memory_type}: {changed}")
        return text

    def is_memory(self, value: Any, stored: str | None) -> bool:
        """Whether the value is what is stored. What the type does not know of that does not count,
        and a default counts that is another one each time.
        """
        try:
            before = self.read_memory(stored)
            if self.memory is None:
                return encode(value, "the data") == encode(before, "the data")
            return self.memory.dump(value) == self.memory.dump(before)
        except (ValueError, TypeError, RecursionError):  # whoever writes it says what is wrong
            return False

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
        if isinstance(returned, type) or inspect.isroutine(returned):
            name = returned.__name__
            return Refused(
                "ResultRefused", f"the result is {name} itself, not called: write {name}()"
            )
        if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
            return Refused(
                "ResultRefused",
                "the handler returned a generator, of which nothing ran yet: return a list",
            )
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
            [text], changed = self.result.write_all([value], "the result")
        except ValidationError:
            return self._encode_by_its_json(self.result, value)
        if changed is not None and not self.warned:
            self.warned.add("result")
            log.warning(
                "results of %s do not read back as they were, as its return annotation -> %s, and"
                " wait() will say so or return something else; its jobs complete: %s",
                self.name,
                self.returns,
                changed,
                extra=log_event("job.result_unreadable", kind=self.name),
            )
        return text

    def _encode_by_its_json(self, result: JsonType, value: Any) -> str:
        """A value that is none of the annotation, but whose JSON may be: a dataclass for a dict."""
        text = "null" if value is None else encode(value, "the result")
        try:
            result.read(text)
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
            return self.result.read(text)
        except ValidationError as error:
            raise ConfigurationError(
                f"the stored result does not fit the return annotation of {self.name} ->"
                f" {self.returns}: {explain(error, '')}"
            ) from None


def check_queue(queue: object) -> None:
    """ConfigurationError unless it is a queue's name."""
    if not isinstance(queue, str) or not QUEUE.fullmatch(queue):
        shown = str(queue)[:60] if queue is not None else None
        raise ConfigurationError(
            f"{shown!r} is not a queue: use 1 to 48 letters, digits and . _ : / -"
        )
