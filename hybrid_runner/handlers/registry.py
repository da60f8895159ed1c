"""The kinds of jobs that an application knows, its reconcilers and its schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.reconciler import Reconciler
from hybrid_runner.model.jobs import Keep, State
from hybrid_runner.model.kinds import DeclaredKind
from hybrid_runner.model.schedules import MOST_DECLARED, DeclaredSchedule
from hybrid_runner.telemetry.feature_report import FeatureReport


class Registry:
    """The kinds that this process knows."""

    def __init__(self) -> None:
        self._kinds: dict[str, JobKind[Any, Any]] = {}
        self._reconcilers: dict[str, Reconciler] = {}
        self._schedules: dict[str, DeclaredSchedule] = {}
        self.reports: list[FeatureReport] = []
        """What features that stand on jobs show of themselves in a worker."""
        self.slots: dict[str, int] = {}
        """How many jobs of each queue the last worker of this process runs at a time."""

    def add(self, kind: JobKind[Any, Any]) -> None:
        """Make a kind known; ConfigurationError when its name is taken."""
        if kind.name in self._kinds:
            raise ConfigurationError(
                f"kind {kind.name!r} has two handlers: give one of them another name"
            )
        self._refuse_circle(kind)
        self._kinds[kind.name] = kind

    def _refuse_circle(self, kind: JobKind[Any, Any]) -> None:
        """ConfigurationError if jobs of a kind would be stored by their own ends."""
        way, after = [kind.name], kind.on_end
        while after is not None and after not in way:
            way.append(after)
            following = self._kinds.get(after)
            after = following.on_end if following is not None else None
        if after is not None:
            raise on_end_in_a_circle([*way, after])

    @property
    def on_ends(self) -> dict[str, str]:
        """What the kinds say under `on_end`, by their names; those that do."""
        return {kind.name: kind.on_end for kind in self if kind.on_end is not None}

    def __getitem__(self, name: str) -> JobKind[Any, Any]:
        return self._kinds[name]

    def get(self, name: str) -> JobKind[Any, Any] | None:
        """The kind of that name, if this process knows it."""
        return self._kinds.get(name)

    def __iter__(self) -> Iterator[JobKind[Any, Any]]:
        return iter(self._kinds.values())

    def __len__(self) -> int:
        return len(self._kinds)

    def declared(self) -> list[DeclaredKind]:
        """What a worker writes down of all kinds."""
        return [kind.declared() for kind in self]

    @property
    def reconcilers(self) -> list[Reconciler]:
        """All of them."""
        return list(self._reconcilers.values())

    def add_reconciler(self, reconciler: Reconciler) -> None:
        """Make one known; ConfigurationError when its name is taken."""
        if reconciler.name in self._reconcilers:
            raise ConfigurationError(
                f"there are two reconcilers {reconciler.name!r}: give one of them another name"
            )
        self._reconcilers[reconciler.name] = reconciler

    @property
    def schedules(self) -> list[DeclaredSchedule]:
        """Those that this process declares, by name."""
        return [self._schedules[name] for name in sorted(self._schedules)]

    def add_schedule(self, schedule: DeclaredSchedule) -> None:
        """Make one known; ConfigurationError when its name is taken."""
        if schedule.name in self._schedules:
            raise ConfigurationError(
                f"there are two schedules {schedule.name!r}: give one of them another name"
            )
        if len(self._schedules) == MOST_DECLARED:
            raise ConfigurationError(
                f"schedule {schedule.name!r}: an application declares {MOST_DECLARED:,} at most:"
                " store the others with hybrid_runner.schedule(…) in SQL"
            )
        self._schedules[schedule.name] = schedule

    def keeps(self, usual: Keep) -> list[tuple[State, str, timedelta]]:
        """How long ended jobs are kept, as (state, kind, how long); `usual` is for kinds that say
        nothing, under the name ''.
        """
        return [*usual.rules(""), *(rule for kind in self for rule in kind.keep.rules(kind.name))]


def on_end_in_a_circle(way: Sequence[str]) -> ConfigurationError:
    """The error that names the kinds on the way."""
    return ConfigurationError(
        f"kind {way[0]!r}: on_end goes in a circle ({' -> '.join(way)}), so its jobs would follow"
        " each other for ever: end it somewhere"
    )
