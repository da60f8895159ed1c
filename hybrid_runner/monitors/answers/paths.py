"""Where in an answer a value is: names with dots between, or JSONPath."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from hybrid_runner.errors import ConfigurationError

if TYPE_CHECKING:
    from jsonpath import JSONPathEnvironment

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

    def take(self) -> None:
        self._left -= 1
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
        self._compiled = _compiled(path, where)
        self.is_singular: bool = self._compiled.singular_query()
        """It finds one value at most, whatever the answer."""

    def __call__(self, value: Any, steps: Steps) -> Iterator[Found]:
        if not isinstance(value, (dict, list)):  # a text would be read as JSON
            return
        try:
            for match in self._compiled.finditer(value, filter_context={"steps": steps}):
                key = match.parts[-1] if match.parts else None
                yield Found(key if isinstance(key, str) else None, match.obj)
        except (TooMuch, GeneratorExit):
            raise
        except Exception as error:  # whatever a filter says of an odd answer
            raise Unreadable(str(error).split("\n")[0]) from None


def _compiled(path: str, where: str) -> Any:
    if find_spec("jsonpath") is None:
        raise ConfigurationError(
            f"{where} is JSONPath, which needs a package that this worker has not:"
            " pip install 'hybrid-runner[jsonpath]'"
        )
    from jsonpath import JSONPathError  # noqa: PLC0415  an optional package

    try:
        return _environment().compile(path)
    except (JSONPathError, ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise ConfigurationError(f"{where} is no JSONPath: {reason}") from None


def _environment() -> JSONPathEnvironment:
    """RFC 9535 without regular expressions, which could keep a worker busy for ever."""
    from jsonpath import JSONPathEnvironment, JSONPathMatch  # noqa: PLC0415  an optional package

    class Counted(JSONPathMatch):
        __slots__ = ()

        def __init__(self, **values: Any) -> None:
            values["filter_context"]["steps"].take()
            super().__init__(**values)

    class Bounded(JSONPathEnvironment):
        match_class = Counted

    environment = Bounded(strict=True)
    for name in ("match", "search"):
        del environment.function_extensions[name]
    return environment
