"""Walks every interleaving of workers that follow a Doorbell with producers, handlers, mutes that
run out and what else may happen.

A world is bad when a committed job waits, a live worker has a free slot, and nothing that comes by
itself leads to a claim: no ring that was raised, no pause that ends, no wait for transactions that
have ended. The fallback poll does not count.

What keeps it fast: workers, and what they share, are small numbers; a worker's moves are worked out
once for each scene; worlds that differ only in who is who are one; a world in which no job is left
to lose is not followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Generic, NamedTuple, TypeVar

from hybrid_runner.policy.doorbell import Doorbell, Mode, Reason
from tests.model.moves import Moves, heard
from tests.model.worlds import IN_FLIGHT, WAITING, Bell, Chances, Life, Phase, Rules, Scene, Worker

T = TypeVar("T", bound=Hashable)
World = tuple[int, ...]
"""The number of a scene, then those of the workers, in rising order."""


class Numbers(Generic[T]):
    """A small number for each value."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, value: T) -> int:
        """The number of a value."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class Effect(NamedTuple):
    """A move, in numbers."""

    scene: int
    worker: int
    own: bool
    ring: Reason | None
    claims: bool


class Explored(NamedTuple):
    """What was found."""

    worlds: int
    bad: int
    story: list[str]
    """The shortest way to a bad world."""
    workers: list[Worker]
    """Every one that any world holds."""


class Explorer:
    """All worlds that can be reached, and which of them are bad."""

    def __init__(
        self,
        slots: tuple[int, ...],
        producers: int,
        chances: Chances = Chances(),  # noqa: B008  # frozen
        rules: Rules = Rules(),  # noqa: B008  # frozen
        doorbell: Doorbell | None = None,
    ) -> None:
        self._slots = slots
        self._producers = producers
        self._chances = chances
        self._reads_bells = chances.heartbeats or chances.crashes > 0
        self._moves = Moves(doorbell or Doorbell(), chances, rules)
        self._scenes: Numbers[Scene] = Numbers()
        self._workers: Numbers[Worker] = Numbers()
        self._effects = cache(self._effects)  # type: ignore[method-assign]
        self._inserts = cache(self._inserts)  # type: ignore[method-assign]
        self._heard = cache(self._heard)  # type: ignore[method-assign]
        self._reordered = cache(self._reordered)  # type: ignore[method-assign]
        self._has_waiting = cache(self._has_waiting)  # type: ignore[method-assign]

    def explore(self, most: int = 2_000_000) -> Explored:
        """Walk until nothing is new."""
        start = self._start()
        number, todo = {start: 0}, deque([start])
        safe = bytearray([1])
        came_from = [0]
        led_from: dict[int, list[int]] = {}
        while todo:
            world = todo.popleft()
            here = number[world]
            is_safe = safe[here]
            for after, own, claims in self._following(world):
                there = number.get(after)
                if there is None:
                    there = number[after] = len(number)
                    came_from.append(here)
                    safe.append(self._is_safe(after))
                    if self._can_lose(after):
                        todo.append(after)
                    assert there < most, "more worlds than expected"
                if own and not is_safe:
                    if claims:
                        safe[here] = 1
                    led_from.setdefault(there, []).append(here)
        _spread(safe, led_from)
        return Explored(
            len(number),
            safe.count(0),
            self._story(list(number), came_from, safe.find(0)),
            self._workers.values,
        )

    def _start(self) -> World:
        """Everybody is asleep, and has been for long."""
        chances, jobs = self._chances, ((Phase.NEW, 0),) * self._producers
        scene = Scene(Bell.OPEN, jobs, chances.crashes, chances.losses, chances.leaves)
        return (self._scene(scene), *sorted(self._workers.of(Worker(free)) for free in self._slots))

    # --- what is wanted

    def _is_safe(self, world: World) -> bool:
        """Nothing waits, or nobody could take it."""
        return not self._has_waiting(world[0]) or not any(
            self._workers.values[worker].free for worker in world[1:]
        )

    def _has_waiting(self, scene: int) -> bool:
        return any(phase in WAITING for phase, _ in self._scenes.values[scene].jobs)

    def _can_lose(self, world: World) -> bool:
        return bool(self._scenes.values[world[0]].jobs)

    # --- what follows

    def _following(self, world: World) -> Iterator[tuple[World, bool, bool]]:
        scene, *workers = world
        for after, ring in self._inserts(scene):
            yield (
                self._world(
                    after,
                    workers if ring is None else [self._heard(worker, ring) for worker in workers],
                ),
                False,
                False,
            )
        if self._scenes.values[scene].bell is Bell.MUTED:
            yield (
                self._world(self._run_out(scene), workers),
                self._nobody_renews(scene, workers),
                False,
            )
        listed = [self._workers.values[worker].listed for worker in workers]
        for place, worker in enumerate(workers):
            others_sleep = sum(listed) > listed[place]
            for after, moved, own, ring, claims in self._effects(
                scene, worker, place, others_sleep
            ):
                all_workers = (
                    workers.copy()
                    if ring is None
                    else [self._heard(other, ring) for other in workers]
                )
                all_workers[place] = moved
                yield self._world(after, all_workers), own, claims

    def _nobody_renews(self, scene: int, workers: Iterable[int]) -> bool:
        """Time passes: the mute of a dead worker runs out by itself."""
        crashed = self._scenes.values[scene].crashes < self._chances.crashes
        return crashed and not any(
            worker.life is Life.ALIVE and worker.step[0].mode in (Mode.AWAKE, Mode.FULL)
            for worker in map(self._workers.values.__getitem__, workers)
        )

    def _run_out(self, scene: int) -> int:
        return self._scene(self._scenes.values[scene]._replace(bell=Bell.RUN_OUT))

    def _inserts(self, scene: int) -> list[tuple[int, Reason | None]]:
        return [
            (self._scene(after), ring)
            for after, ring in self._moves.of_producers(self._scenes.values[scene])
        ]

    def _effects(self, scene: int, worker: int, place: int, others_sleep: bool) -> list[Effect]:
        moves = self._moves.of(
            self._scenes.values[scene],
            self._workers.values[worker],
            place,
            others_sleep=others_sleep,
        )
        effects = (
            Effect(self._scene(move.scene), self._workers.of(move.worker), *move[2:])
            for move in moves
        )
        return [
            effect
            for effect in dict.fromkeys(effects)
            if (effect.scene, effect.worker) != (scene, worker) or effect.ring is not None
        ]

    def _heard(self, worker: int, ring: Reason) -> int:
        return self._workers.of(heard(self._workers.values[worker], ring))

    # --- what is the same

    def _scene(self, scene: Scene) -> int:
        """If nobody reads the bell, its state does not matter."""
        if not self._reads_bells and (
            scene.bell is Bell.RUN_OUT or not any(phase is Phase.NEW for phase, _ in scene.jobs)
        ):
            scene = scene._replace(bell=Bell.OPEN)
        return self._scenes.of(scene)

    def _world(self, scene: int, workers: list[int]) -> World:
        """Workers change places until they are in order; who waits for a transaction is still the
        same one.
        """
        ordered = sorted(workers)
        if ordered != workers:
            scene = self._reordered(
                scene, tuple(sorted(range(len(workers)), key=workers.__getitem__))
            )
        return (scene, *ordered)

    def _reordered(self, scene: int, order: tuple[int, ...]) -> int:
        before = self._scenes.values[scene]
        jobs = (
            (
                phase,
                sum((bits >> old & 1) << new for new, old in enumerate(order))
                if phase in IN_FLIGHT
                else bits,
            )
            for phase, bits in before.jobs
        )
        return self._scene(before._replace(jobs=tuple(sorted(jobs))))

    # --- the report

    def _story(self, worlds: list[World], came_from: list[int], place: int) -> list[str]:
        if place < 0:
            return []
        before = self._story(worlds, came_from, came_from[place]) if place else []
        scene, *workers = worlds[place]
        return [
            *before,
            " | ".join(
                [
                    str(self._scenes.values[scene]),
                    *(str(self._workers.values[worker]) for worker in workers),
                ]
            ),
        ]


def _spread(safe: bytearray, led_from: dict[int, list[int]]) -> None:
    """A world is safe if it leads to a safe one by itself."""
    todo = [place for place in range(len(safe)) if safe[place]]
    while todo:
        for before in led_from.get(todo.pop(), ()):
            if not safe[before]:
                safe[before] = 1
                todo.append(before)
