"""What an answer must be, beyond 2xx: a tree of and, or, not over status, header, body, latency
and certificate.

`expect=status(equals=200) & ~body("status", equals="DOWN")`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import orjson

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers import definitions
from hybrid_runner.monitors.answers.definitions import (
    Boolean,
    Definition,
    Number,
    OptionalPath,
    ShortText,
    check_size,
    checked,
)
from hybrid_runner.monitors.answers.paths import Getter, getter

DEEPEST: Final = 8
MOST: Final = 50
Kind: TypeAlias = Literal["status", "header", "body", "latency", "certificate"]
Comparison: TypeAlias = Literal["equals", "contains", "above", "below", "exists"]
_KEYS: Final = ("and", "or", "not", "status", "header", "body", "latency", "certificate")


@dataclass(frozen=True, slots=True)
class Expect:
    """Something expected of an answer; `&`, `|` and `~` make more of it."""

    tree: dict[str, Any]

    def __post_init__(self) -> None:
        compile_expect(self.tree)

    def stored(self) -> dict[str, Any]:
        """As column `expect` of hybrid_monitors.services has it."""
        return self.tree

    def __and__(self, other: Expect) -> Expect:
        return _joined("and", self, other)

    def __or__(self, other: Expect) -> Expect:
        return _joined("or", self, other)

    def __invert__(self) -> Expect:
        return Expect({"not": self.tree})


def status(
    *, equals: int | None = None, above: int | None = None, below: int | None = None
) -> Expect:
    """The status of the answer."""
    return _leaf("status", equals=equals, above=above, below=below)


def header(
    name: str,
    *,
    equals: str | None = None,
    contains: str | None = None,
    exists: bool | None = None,
) -> Expect:
    """A header of the answer."""
    return _leaf("header", name=name, equals=equals, contains=contains, exists=exists)


def body(
    path: str | None = None,
    *,
    equals: str | float | bool | None = None,
    contains: str | None = None,
    above: float | None = None,
    below: float | None = None,
    exists: bool | None = None,
) -> Expect:
    """A value in the answer; without a path its whole text."""
    return _leaf(
        "body",
        path=path,
        equals=equals,
        contains=contains,
        above=above,
        below=below,
        exists=exists,
    )


def latency(*, below: float | None = None, above: float | None = None) -> Expect:
    """Milliseconds until the answer was there."""
    return _leaf("latency", above=above, below=below)


def certificate(*, above: float | None = None, below: float | None = None) -> Expect:
    """Days until the certificate of the service ends."""
    return _leaf("certificate", above=above, below=below)


def _joined(key: str, *both: Expect) -> Expect:
    """`a & b & c` is one list of three."""
    parts = [part for each in both for part in each.tree.get(key, [each.tree])]
    return Expect({key: parts})


def _leaf(kind: Kind, **given: Any) -> Expect:
    return Expect({kind: {name: value for name, value in given.items() if value is not None}})


class StoredStatus(Definition):
    names: ClassVar = ("equals", "above", "below")
    equals: Number = None
    above: Number = None
    below: Number = None


class StoredHeader(Definition):
    names: ClassVar = ("equals", "contains", "exists")
    name: ShortText
    equals: ShortText = None
    contains: ShortText = None
    exists: Boolean = None


class StoredBody(Definition):
    names: ClassVar = ("equals", "contains", "above", "below", "exists")
    path: OptionalPath = None
    equals: definitions.Literal = None
    contains: ShortText = None
    above: Number = None
    below: Number = None
    exists: Boolean = None


class StoredNumber(Definition):
    names: ClassVar = ("above", "below")
    above: Number = None
    below: Number = None


class Leaf(NamedTuple):
    """One comparison."""

    where: str
    kind: Kind
    at: str | None
    """Path of a body, name of a header."""
    get: Getter | None
    comparison: Comparison
    wanted: Any


class Branch(NamedTuple):
    join: Literal["and", "or", "not"]
    parts: tuple[Node, ...]


Node: TypeAlias = Branch | Leaf


def compile_expect(stored: Any) -> Node:
    """ConfigurationError in one line when it is not as it must be."""
    try:
        text = orjson.dumps(stored)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"expect cannot be written as JSON: {error}") from None
    return _compiled(text)


@lru_cache(maxsize=1024)
def _compiled(text: bytes) -> Node:
    stored = orjson.loads(text)
    check_size(stored, "expect")
    _check_bounds(stored)
    return _node(stored, "expect")


def leaves(node: Node) -> tuple[Leaf, ...]:
    if isinstance(node, Leaf):
        return (node,)
    return tuple(leaf for part in node.parts for leaf in leaves(part))


def _check_bounds(stored: Any) -> None:
    """Before anything else, so that nothing below needs to mind depth."""
    level, count = [stored], 0
    for _ in range(DEEPEST):
        count += sum(isinstance(node, dict) for node in level)
        level = [part for node in level for part in _parts(node)]
    if any(isinstance(node, dict) for node in level):
        raise ConfigurationError(f"expect is deeper than {DEEPEST}")
    if count > MOST:
        raise ConfigurationError(f"expect has more than {MOST} parts")


def _parts(node: Any) -> list[Any]:
    if not isinstance(node, dict):
        return []
    joined = [node[key] for key in ("and", "or") if isinstance(node.get(key), list)]
    return [
        *(part for parts in joined for part in parts),
        *([node["not"]] if "not" in node else []),
    ]


def _node(stored: Any, where: str) -> Node:
    if not isinstance(stored, dict):
        raise ConfigurationError(f"{where} must be an object")
    if len(stored) != 1 or (key := next(iter(stored))) not in _KEYS:
        raise ConfigurationError(f"{where} must have exactly one of {', '.join(_KEYS)}")
    value, within = stored[key], f"{where}.{key}"
    if key == "not":
        return Branch("not", (_node(value, within),))
    if key in {"and", "or"}:
        if not isinstance(value, list) or not value:
            raise ConfigurationError(f"{within} must be a list of one or more")
        parts = tuple(_node(part, f"{within}[{index}]") for index, part in enumerate(value))
        return Branch("and" if key == "and" else "or", parts)
    return _stored_leaf(key, value, within)


def _stored_leaf(kind: Any, value: Any, where: str) -> Leaf:
    model: Any = {"status": StoredStatus, "header": StoredHeader, "body": StoredBody}.get(
        kind, StoredNumber
    )
    leaf = checked(model, value, where)
    given = [name for name in model.names if name in leaf.model_fields_set]
    if len(given) != 1:
        raise ConfigurationError(f"{where} must have exactly one of {', '.join(model.names)}")
    comparison: Any = given[0]
    at = getattr(leaf, "path", None) or getattr(leaf, "name", None)
    if kind == "body" and at is None and comparison != "contains":
        raise ConfigurationError(f"{where}.path is missing")
    get = getter(at) if kind == "body" and at else None
    return Leaf(where, kind, at, get, comparison, getattr(leaf, comparison))
