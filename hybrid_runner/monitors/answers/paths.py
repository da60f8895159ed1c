"""Where in an answer a value is: names with dots between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

MISSING: Final = object()
"""Nothing is at the path."""
Getter: TypeAlias = Callable[[Any], Any]
"""The value at a path, or MISSING."""


def getter(path: str) -> Getter:
    parts = tuple(path.split(".")) if path else ()
    if len(parts) == 1:
        name = parts[0]
        return lambda value: value.get(name, MISSING) if type(value) is dict else MISSING

    def at(value: Any) -> Any:
        for part in parts:
            if type(value) is not dict or part not in value:
                return MISSING
            value = value[part]
        return value

    return at
