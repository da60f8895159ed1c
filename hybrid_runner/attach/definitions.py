"""From the arguments of `attach` to what somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, TypeAlias, TypeVar

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.sources import Columns, SourceDefinition, Words

T = TypeVar("T", Words, Columns)
Given: TypeAlias = Mapping[str, str | None] | None
"""Fields of Words or Columns by their names."""

_ALWAYS = "true"
"""The condition where none is given; the queued word is asked for beside it."""


def definition_of(
    registry: Registry,
    table: str,
    kind: JobKind[Any, Any] | str,
    words: Words,
    columns: Columns,
    options: Mapping[str, Any],
) -> SourceDefinition:
    """What somebody asks for; the queue is that of the kind's handler where its code is at hand."""
    name = kind if isinstance(kind, str) else kind.name
    known = registry.get(name) if isinstance(kind, str) else kind
    queue = options.get("queue") or (None if known is None else known.queue)
    chosen = {"when": _ALWAYS, **options, "queue": queue}
    for listed in ("key", "payload"):
        if listed in chosen:
            chosen[listed] = _names(listed, chosen[listed])
    return SourceDefinition(table=table, kind=name, words=words, columns=columns, **chosen)


def stored_definition(stored: Mapping[str, Any], table: str) -> SourceDefinition:
    """What was asked for when a table was attached; `table` is its name now."""
    values = dict(stored) | {"table": table}
    values["words"], values["columns"] = Words(**stored["words"]), Columns(**stored["columns"])
    for listed in ("key", "payload"):
        values[listed] = values[listed] and tuple(values[listed])
    return SourceDefinition(**values)


def known_fields(given: Words | Columns | Given) -> dict[str, str]:
    """The fields that have a value."""
    if isinstance(given, (Words, Columns)):
        given = asdict(given)
    values: Mapping[str, str | None] = given or {}
    return {name: value for name, value in values.items() if value is not None}


def completed(what: type[T], given: T | Given) -> T:
    """Words or Columns of what is given; ConfigurationError names what is missing."""
    if isinstance(given, what):
        return given
    values = known_fields(given)
    names = [field.name for field in fields(what)]
    title = what.__name__.lower()
    if unknown := values.keys() - set(names):
        raise ConfigurationError(
            f"{title} has no field {min(unknown)!r}: it has {', '.join(names)}"
        )
    required = [field.name for field in fields(what) if field.default is MISSING]
    if missing := [name for name in required if name not in values]:
        flags = ["--" + name.replace("_", "-") for name in missing]
        named = " and ".join(part for part in (", ".join(flags[:-1]), flags[-1]) if part)
        raise ConfigurationError(f"name {named} (fields of {what.__name__}), or add --guess")
    made: T = what(**values)
    return made


def _names(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    names = given.split(",") if isinstance(given, str) else given
    stripped = tuple(name.strip() for name in names)
    if not stripped or not all(stripped):
        raise ConfigurationError(f"{what} must name columns, like id or tenant_id,id")
    return stripped
