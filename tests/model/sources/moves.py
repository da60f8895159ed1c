"""What everybody does, statement by statement. A statement either changes the world, or waits for
transactions that hold what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from tests.model.sources.turn import Waits
from tests.model.sources.worlds import (
    COMMIT,
    WAITING,
    Decide,
    Ended,
    Job,
    Phase,
    Row,
    Rules,
    Statement,
    World,
)
from tests.model.sources.writing import Writing


class Moves(Writing):
    """All statements."""

    def run(self) -> None:
        """The next one."""
        one = self.work.todo[0]
        self.work = self.work._replace(todo=self.work.todo[1:])
        about_key: dict[str, Callable[[int], None]] = {
            "retry": self.retry,
            "look at late row": self.look_at_late_row,
            "look at change": self.look_at_change,
            "look at changed row": self.look_at_changed_row,
            "forget late row": self.forget_late_row,
            "store wanted": self.store_wanted,
            "cancel": self.cancel,
            "cancel for the row": self.cancel_for_row,
        }
        others: dict[str, Callable[[Statement], None]] = {
            "end": self.change_job,
            "put back": self.change_job,
            "beat": self.change_job,
            "show": self.change_job,
            "write": self.write,
            "write queued": self.write,
            "write later": self.write,
            "write for somebody": self.write_for_somebody,
            "store again": self.store_again,
            "note late row": self.note_late_row,
        }
        if one == COMMIT:
            self.commit()
        elif one.what in about_key:
            about_key[one.what](one.key)
        elif one.what.startswith("trigger"):
            self.trigger(one)
        else:
            others.get(one.what, self.edit)(one)

    def change_job(self, one: Statement) -> None:
        """Settles, shows and rescues: nothing, if the claim is not the job's own any more."""
        key, is_fenced = one.key, self.rules.fence_by_claim or one.what != "show"
        if is_fenced:
            self.lock(key, "job")
        job = self.job(key)
        if is_fenced and (job is None or job.phase in WAITING or job.claim != one.claim):
            self.forget(key)
        elif job is not None and one.what == "end":
            self._end(key, job, one.state)
            row = self.committed(key).row
            is_row = row is not None and row.shows == "running" and row.of_job == job.number
            if one.state == "cancelled" and job.told_by == "row" and is_row:
                self.fault = "a row is cancelled that its application wants"
        elif job is not None and one.what == "put back" and job.told_by:
            self._end(key, job, "cancelled")
            self.forget(key)
            self.then(Statement("write", key, "cancelled"))
        elif job is not None and one.what == "put back":
            phase = Phase.SNOOZED if one.state == "snoozed" else Phase.QUEUED
            self.put(key, "job", job._replace(phase=phase))

    def _end(self, key: int, job: Job, state: str) -> None:
        self.put(key, "job", None)
        was_queued = job.phase in WAITING
        self.put(key, "ended", Ended(job.number, state, was_queued, job.claim))

    def _cancel(self, key: int, write: str) -> None:
        """A waiting job ends, a running one is told; the row is written by the same statement."""
        self.lock(key, "job")
        job = self.job(key)
        if job is not None and job.phase in WAITING:
            self._end(key, job, "cancelled")
            self.then(Statement(write, key, "cancelled"))
        elif job is not None:
            is_row = not write.endswith("somebody")
            self.put(key, "job", job._replace(told_by="row" if is_row else "somebody"))

    def cancel(self, key: int) -> None:
        """By its number."""
        self._cancel(key, "write for somebody")

    def cancel_for_row(self, key: int) -> None:
        self._cancel(key, "write" if self.rules.changed_is_not_queued else "write queued")

    def store_wanted(self, key: int) -> None:
        self.insert_job(key, self.next_job(key))

    def retry(self, key: int) -> None:
        """Of an ended job."""
        if self.rules.retry_locks_late_row and self.committed(key).late is not None:
            self.lock(key, "late")
        ended = self.committed(key).ended
        if ended.number and self.insert_job(key, Job(ended.number, claim=ended.claim)):
            self.put(key, "ended", Ended())
            self.then(Statement("write", key, "retried"))

    def look_at_change(self, key: int) -> None:
        """Whoever has the job locked may be about to do something else with it."""
        self.lock(key, "noted")
        if self.rules.lock_before_looking:
            if self.holders((key, "job")):
                return
            self.lock(key, "job")
        job = self.job(key)
        if job is not None and job.phase is Phase.CLAIMED and self.rules.tell_only_the_shown:
            return
        self.put(key, "noted", -self.committed(key).noted)
        self.then(Statement("look at changed row", key))

    def look_at_changed_row(self, key: int) -> None:
        """What does the row want by now?"""
        row, rules = self.row(key), self.rules
        if row is not None and row.is_wanted and rules.look_at_changed_rows:
            if self.holders((key, "row")):
                self.put(key, "noted", 0)  # later
            else:
                self.lock(key, "row")
                self.then(Statement("store wanted", key))
        elif row is None or row.shows == "other" or not rules.look_at_changed_rows:
            self.then(Statement("cancel for the row", key))

    def look_at_late_row(self, key: int) -> None:
        """What is its job now? If somebody has the job, there is more to come."""
        late = self.late(key)
        if late is None or self.holders((key, "late")):
            return
        if self.rules.hold_late_row:
            self.lock(key, "late")
        job = self.committed(key).job
        if not self.rules.state_of_then:
            self.then(Statement("write", key, late.noted))
        elif job is None:
            ended = self.committed(key).ended
            is_believed = ended.was_queued and not self.rules.compare_what_was_queued
            what = "write queued" if is_believed else "write later"
            self.then(Statement(what, key, ended.state))
        elif not self.holders((key, "job")):
            self.lock(key, "job")
            states = {Phase.QUEUED: late.noted or "queued", Phase.SNOOZED: "snoozed"}
            self.then(Statement("write later", key, states.get(job.phase, "running")))

    # --- the application

    def edit(self, one: Statement) -> None:
        """It changes a row; the trigger follows."""
        key = one.key
        self.lock(key, "row")
        row = self.row(key)
        match one.what:
            case "insert" if row is None:
                self.put(key, "row", Row("queued", is_unread=True))
                self.then(Statement("trigger: is new", key))
            case "arm" if row is not None:
                self.put(key, "row", Row("queued", is_unread=True))
                if not row.is_wanted:
                    self.then(Statement("trigger: is wanted", key))
            case "unfit" if row is not None and row.shows != "ended":
                self.put(key, "row", row._replace(is_fit=False, is_unread=False))
            case "stop" if row is not None:
                self.put(key, "row", Row("other"))
                self.then(Statement("trigger: is stopped", key))
            case "finish" if row is not None:
                self.put(key, "row", Row("ended"))
            case "delete" if row is not None:
                self.put(key, "row", None)
                self.then(Statement("trigger: is stopped", key))
            case _:
                pass

    def trigger(self, one: Statement) -> None:
        key = one.key
        match one.what:
            case "trigger: is new":
                if not self.insert_job(key, self.next_job(key)) and self.rules.note_conflicts:
                    self._note(key)
            case "trigger: is wanted":
                self.insert_job(key, self.next_job(key))
            case _ if self.job(key) is None:
                pass
            case _ if self.rules.triggers_only_insert:
                self._note(key)
            case _:
                self._cancel(key, "write")

    def _note(self, key: int) -> None:
        own = cast("int", dict(self.work.wrote).get((key, "noted"), 0))
        self.put(key, "noted", own + 1)


def turns(world: World, rules: Rules, decide: Decide) -> Iterator[tuple[str, World | Waits]]:
    """What each transaction does next, or whom it waits for."""
    for place, work in enumerate(world.works):
        if not work.todo:
            continue
        turn = Moves(world, place, rules, decide)
        try:
            turn.run()
        except Waits as waits:
            waits.place = place
            yield f"{work.who}: {work.todo[0]}", waits
            if waits.briefly:
                turn = Moves(world, place, rules, decide)
                turn.give_up()
                yield f"{work.who}: gives up {work.todo[0]}", turn.done()
        else:
            yield f"{work.who}: {work.todo[0]}", turn.done()
            if world.left.swallows and work.todo[0].what.startswith("write"):
                turn = Moves(world, place, rules, decide, swallows=True)
                turn.run()
                if not turn.swallows:
                    left = world.left._replace(swallows=world.left.swallows - 1)
                    label = f"{work.who}: {work.todo[0]}, which a trigger drops"
                    yield label, turn.done()._replace(left=left)
