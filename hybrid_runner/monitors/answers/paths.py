"""Where in an answer a value is: names with dots between, or JSONPath."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, TypeAlias

from hybrid_runner.errors import ConfigurationError

MISSING: Final = object()
"""Nothing is at the path."""
MOST_NODES: Final = 50_000
"""Values that the JSONPaths of one mapping look at in one answer."""


class TooMuch(Exception):
    """A JSONPath would look at more values than it may."""


class Unreadable(Exception):
    """A JSONPath cannot be applied to this answer."""


class Steps:
    """How many values may still be looked at in this answer."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def take(self, count: int = 1) -> None:
        self._left -= count
        if self._left < 0:
            raise TooMuch(f"its JSONPath looks at more than {MOST_NODES:,} values: make it simpler")


class Found(NamedTuple):
    key: str | None
    """The name under which it lies in an object."""
    value: Any


Getter: TypeAlias = Callable[[Any, Steps], Any]
"""The value at a path, or MISSING."""


def is_jsonpath(path: str) -> bool:
    return path.startswith(("$.", "$["))


def getter(path: str, where: str) -> Getter:
    """ConfigurationError when it is JSONPath and wrong, or cannot be read here."""
    if is_jsonpath(path):
        found = JSONPath(path, where)
        return lambda value, steps: next((each.value for each in found(value, steps)), MISSING)
    parts = tuple(path.split(".")) if path else ()
    if len(parts) == 1:
        name = parts[0]
        return lambda value, _: value.get(name, MISSING) if type(value) is dict else MISSING

    def at(value: Any, _: Steps) -> Any:
        for part in parts:
            if type(value) is not dict or part not in value:
                return MISSING
            value = value[part]
        return value

    return at


class JSONPath:
    """All values that a JSONPath finds, in the order of the answer."""

    def __init__(self, path: str, where: str) -> None:
        if find_spec("jsonpath") is None:
            raise ConfigurationError(
                f"{where} is JSONPath, which needs a package that is not installed here:"
                " pip install 'hybrid-runner[jsonpath]'"
            )
        from hybrid_runner.monitors.answers.jsonpaths import (  # noqa: PLC0415  an optional package
            Bounded,
            PathRefused,
        )

        try:
            self._path = Bounded(path)
        except PathRefused as error:
            raise ConfigurationError(f"{where} is no JSONPath: {error}") from None
        self.is_singular: bool = self._path.is_singular
        """It finds one value at most, whatever the answer."""

    def __call__(self, value: Any, steps: Steps) -> Iterator[Found]:
        if not isinstance(value, (dict, list)):
            return
        try:
            for key, found in self._path.find(value, steps.take):
                yield Found(key if isinstance(key, str) else None, found)
        except (TooMuch, GeneratorExit):
            raise
        except Exception as error:  # whatever a filter says of an odd answer
            raise Unreadable(str(error).split("\n")[0]) from None
