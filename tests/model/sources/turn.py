"""One statement of one transaction: what it sees, what it locks, and what it writes."""

from __future__ import annotations

from typing import cast

from tests.model.sources.worlds import (
    COMMIT,
    Cell,
    Decide,
    Ended,
    Field,
    Job,
    Key,
    Late,
    Row,
    Rules,
    Statement,
    Work,
    World,
)


class Waits(Exception):
    """The statement cannot go on before one of these has ended."""

    def __init__(self, *places: int, briefly: bool = False) -> None:
        super().__init__()
        self.place, self.places = -1, places
        self.briefly = briefly


class Turn:
    """One statement of one transaction: what it sees, and what it changes."""

    def __init__(
        self, world: World, place: int, rules: Rules, decide: Decide, *, swallows: bool = False
    ) -> None:
        self.world, self.place, self.rules, self._decide = world, place, rules, decide
        self.swallows = swallows
        """A trigger drops what is written. Taken back once it has."""
        self.work = world.works[place]
        self.fault = ""

    def done(self) -> World:
        """The world after it."""
        works = self.world.works
        works = (*works[: self.place], self.work, *works[self.place + 1 :])
        if self.work.todo in ((), (COMMIT,)) and not self.work.locks:
            works = (*works[: self.place], *works[self.place + 1 :])
        fault = self.world.fault or self.fault
        return self.world._replace(works=tuple(sorted(works)), fault=fault)

    # --- what it sees

    def committed(self, key: int) -> Key:
        return self.world.keys[key]

    def sees(self, key: int, field: Field) -> object:
        """What is committed, and what it wrote itself."""
        own = dict(self.work.wrote)
        return own[key, field] if (key, field) in own else getattr(self.world.keys[key], field)

    def row(self, key: int) -> Row | None:
        return cast("Row | None", self.sees(key, "row"))

    def job(self, key: int) -> Job | None:
        return cast("Job | None", self.sees(key, "job"))

    def late(self, key: int) -> Late | None:
        return cast("Late | None", self.sees(key, "late"))

    def holders(self, cell: Cell) -> list[int]:
        """Others who have it locked."""
        return [
            place
            for place, work in enumerate(self.world.works)
            if place != self.place and cell in work.locks
        ]

    # --- what it changes

    def put(self, key: int, field: Field, value: object) -> None:
        self.work = self.work.having((key, field), value)

    def lock(self, key: int, field: Field, *, briefly: bool = False) -> None:
        """Wait for it."""
        if others := self.holders((key, field)):
            raise Waits(*others, briefly=briefly)
        self.work = self.work._replace(locks=self.work.locks | {(key, field)})

    def forget(self, key: int) -> None:
        """What was still to do for this key is not."""
        todo = tuple(one for one in self.work.todo if one.key != key or one == COMMIT)
        self.work = self.work._replace(todo=todo)

    def then(self, *statements: Statement) -> None:
        self.work = self.work._replace(todo=(*statements, *self.work.todo))

    def insert_job(self, key: int, job: Job, *, briefly: bool = False) -> bool:
        """ON CONFLICT DO NOTHING: waits for others who insert or delete one; was there none?"""
        cell: Cell = (key, "job")
        for place in self.holders(cell):
            wrote = dict(self.world.works[place].wrote)
            before = self.committed(key).job
            if cell in wrote and (wrote[cell] is None) != (before is None):
                raise Waits(place, briefly=briefly)
        if self.job(key) is not None:
            return False
        self.put(key, "job", job)
        return True

    def commit(self) -> None:
        keys, works = list(self.world.keys), list(self.world.works)
        for (key, field), value in self.work.wrote:
            adds = field == "noted"  # or takes away
            after = keys[key].noted + cast("int", value) if adds else value
            keys[key] = keys[key]._replace(**{field: after})  # type: ignore[arg-type]
        for (key, field), _ in self.work.wrote:
            if field == "row":
                keys[key], works = self._touched(key, keys[key], works)
        self.work = self.work._replace(wrote=(), locks=frozenset())
        self.world = self.world._replace(keys=tuple(keys), works=tuple(works))

    def _touched(self, key: int, after: Key, works: list[Work]) -> tuple[Key, list[Work]]:
        """Whoever read the row before was given something else."""
        cell: Cell = (key, "late")
        if after.late is not None:
            after = after._replace(late=after.late._replace(is_untouched=False))
        for place, work in enumerate(works):
            late = dict(work.wrote).get(cell)
            if place != self.place and isinstance(late, Late):
                works[place] = work.having(cell, late._replace(is_untouched=False))
            todo = tuple(
                one._replace(claim=0) if one.key == key and one.what == "note late row" else one
                for one in works[place].todo
            )
            works[place] = works[place]._replace(todo=todo)
        return after, works

    def next_job(self, key: int) -> Job:
        job, ended = self.job(key), cast("Ended", self.sees(key, "ended"))
        return Job(1 + max(ended.number, job.number if job else 0))
