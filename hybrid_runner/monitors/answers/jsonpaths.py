"""JSONPath (RFC 9535) of which no path, whoever wrote it, can keep a worker busy.

What a path looks at is counted. Filters are compared with literals, `[?@.state == "up"]`: no
functions, of which regular expressions could run for ever, and no searches within a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError, JSONPathMatch
from jsonpath.filter import BaseExpression, FilterQuery, InfixExpression
from jsonpath.selectors import Filter


class PathRefused(ValueError):
    """The path is wrong, or does what no path may."""


class Bounded:
    """A path that tells how much it looks at."""

    def __init__(self, text: str) -> None:
        try:
            path = _ENVIRONMENT.compile(text)
        except (JSONPathError, ValueError, RecursionError) as error:
            raise PathRefused(str(error).split("\n")[0]) from None
        if not isinstance(path, JSONPath):
            raise PathRefused("it is more than one path")
        self.is_singular = path.singular_query()
        self._segments: tuple[Any, ...] = tuple(path.segments)
        for segment in self._segments:
            segment.selectors = tuple(
                _Charged(each) if isinstance(each, Filter) else each for each in segment.selectors
            )

    def find(
        self, value: dict[str, Any] | list[Any], take: Callable[[int], None]
    ) -> Iterator[tuple[int | str | None, Any]]:
        """Each value with the last part of its place; `take` may raise, and ends it so."""
        nodes: Iterable[JSONPathMatch] = [
            _Counted(
                filter_context={"take": take},
                obj=value,
                parent=None,
                path="$",
                parts=(),
                root=value,
            )
        ]
        for segment in self._segments:
            nodes = segment.resolve(nodes)
        for node in nodes:
            yield (node.parts[-1] if node.parts else None), node.obj


class _Counted(JSONPathMatch):
    """A value that was looked at; its children are of the same class."""

    __slots__ = ()

    def __init__(self, **values: Any) -> None:
        values["filter_context"]["take"](1)
        super().__init__(**values)

    def add_child(self, *children: JSONPathMatch) -> None:
        """Nobody asks for them, and they would be kept."""


class _Charged:
    """A filter looks at every child, also at those that it does not choose."""

    def __init__(self, chosen: Filter) -> None:
        _check(chosen.expression)
        self._filter = chosen

    def resolve(self, node: JSONPathMatch) -> Iterable[JSONPathMatch]:
        if isinstance(node.obj, (dict, list)):
            take: Any = node.filter_context()["take"]
            take(len(node.obj))
        return self._filter.resolve(node)


def _check(expression: BaseExpression) -> None:
    if isinstance(expression, FilterQuery):
        if not expression.path.singular_query():
            raise PathRefused("a filter may look at one place only, such as @.state.code")
        return
    if (
        isinstance(expression, InfixExpression)
        and isinstance(expression.left, FilterQuery)
        and isinstance(expression.right, FilterQuery)
        and expression.operator not in {"&&", "||"}
    ):
        raise PathRefused("a filter may compare a place with a literal only")
    for part in expression.children():
        _check(part)


def _make_environment() -> JSONPathEnvironment:
    environment = JSONPathEnvironment(strict=True, filter_caching=False)
    environment.function_extensions.clear()
    return environment


_ENVIRONMENT: Final = _make_environment()
