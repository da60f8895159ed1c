"""Which fields of a kind's memory hold values whose uses are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from hybrid_runner.model.uses import Use
from hybrid_runner.waiting.confirmations import Confirmations
from hybrid_runner.waiting.gate import Gate
from hybrid_runner.waiting.tries import Tries

_USES: Final[Mapping[object, tuple[Use, ...]]] = {
    Gate: ("opened",),
    Confirmations: ("seen", "confirmed"),
    Tries: ("again", "used_up"),
}
_MOST: Final = 100
"""Fields of one memory whose series begin at 0."""


def counted_fields(memory: TypeAdapter[Any]) -> list[tuple[Use, str]]:
    """What can be counted, by the names that `waiting.fields` gives."""
    schema: Any = memory.core_schema
    definitions = {each["ref"]: each for each in schema.get("definitions", ())}
    found = dict.fromkeys(_fields(schema.get("schema", schema), "", definitions, frozenset()))
    return [(use, path) for path, cls in list(found)[:_MOST] for use in _USES[cls]]


def _fields(
    node: Any, path: str, definitions: Mapping[str, Any], within: frozenset[str]
) -> Iterator[tuple[str, object]]:
    if isinstance(node, Mapping):
        reference = node.get("schema_ref")
        if isinstance(reference, str):
            if reference not in within:  # else a type that contains itself
                inner = definitions.get(reference)
                yield from _fields(inner, path, definitions, within | {reference})
        elif isinstance(cls := node.get("cls"), type) and cls in _USES:
            yield path, cls
        else:
            for name, part in node.items():
                if name not in ("metadata", "config", "serialization", "default"):
                    below = _below(path, name, part)
                    yield from _fields(part, below, definitions, within)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for part in node:
            name = part.get("name", "") if isinstance(part, Mapping) else ""
            yield from _fields(part, _below(path, name, part), definitions, within)


def _below(path: str, name: str, part: object) -> str:
    if isinstance(part, Mapping) and part.get("type") in ("model-field", "dataclass-field"):
        return f"{path}.{name}" if path else name
    return path
