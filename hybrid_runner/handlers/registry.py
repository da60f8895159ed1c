"""The kinds of jobs that an application knows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.model.jobs import Keep, State


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
