"""What becomes of a job is written into its row, as write_rows and sql/sources/write.sql do it."""

from __future__ import annotations

from typing import cast

from tests.model.sources.turn import Turn, Waits
from tests.model.sources.worlds import WAITING, WORDS, Ended, Late, Phase, Row, Statement

ENDS = ("completed", "cancelled")


class Writing(Turn):
    """What `write` does, and what follows from it."""

    def write(self, one: Statement) -> None:
        """What became of a job: hybrid_runner.write_rows."""
        row, late = self.row(one.key), self.late(one.key)
        others = self.holders((one.key, "row"))
        if others and not self.rules.skip_locked:
            raise Waits(*others)
        if row is None:
            self._is_done(one, None)
            return
        is_untouched = late is not None and late.is_untouched
        verdict = self._verdict(one, row, is_untouched=is_untouched)
        if verdict == "unwanted":
            self._is_refused(one, row)
        elif others and (verdict != "keep" or one.state in ENDS):
            self._is_late(one, row)
        elif verdict == "write" and self.swallows and one.state != "beat":
            self._is_swallowed(one, row)
        elif verdict == "write":
            if not is_untouched:
                self._check(one, row)
            self.put(one.key, "row", self._written(one, row))
            self._is_done(one, row)
        elif verdict == "again":
            if not row.is_unread and one.state == "completed":
                self.fault = "a row is worked on again for nothing"
            self.lock(one.key, "row")
            self.then(one._replace(what="store again"))
        else:
            self._is_done(one, row)

    def write_for_somebody(self, one: Statement) -> None:
        """Who cancels a queued job knows what the row wants."""
        self._read(one.key)
        self.write(one._replace(what="write queued"))

    def _is_swallowed(self, one: Statement, row: Row) -> None:
        """Make the row late whose write a trigger of the table has dropped."""
        self.swallows = False
        if not self.rules.look_at_what_was_written:
            self._is_done(one, row)
            return
        if one.state == "running" and one.what == "write":
            self._read(one.key)
            self._begin(one.key, row)
        self.then(
            Statement("note late row", one.key, one.state, int(self.rules.see_what_was_refused))
        )

    def _is_refused(self, one: Statement, row: Row) -> None:
        if row.shows == "ended" and row.of_job == self._number(one):
            self.fault = "a job does not run again that somebody retried"
        self._is_done(one, None)

    def _verdict(self, one: Statement, row: Row, *, is_untouched: bool) -> str:
        is_later = one.what == "write later"
        if is_later and self.rules.check_under_lock and one.state in ENDS and self.job(one.key):
            return "keep"
        is_changed = row.shows != "running" and not is_untouched
        if is_later and self.rules.later_only_untouched and one.state == "running" and is_changed:
            return "keep"
        was_queued = one.what == "write queued"
        return self._decide(one.state, row.shows, row.is_wanted, was_queued, is_untouched)

    def _written(self, one: Statement, row: Row) -> Row:
        if one.state == "beat":
            return row
        shows = WORDS[one.state]
        if shows == "running":
            is_read = one.what == "write" and one.state == "running" and self.rules.read_when_shown
            return Row(shows, self._number(one), row.is_unread and not is_read, row.is_fit)
        if shows == "ended":
            return Row(shows, self._number(one), is_fit=row.is_fit)
        return Row(shows, 0, row.is_unread, row.is_fit)

    def _check(self, one: Statement, row: Row) -> None:
        """What must not be written over."""
        number = self._number(one)
        if row.shows == "other":
            self.fault = "a word of the application is written over"
        elif row.shows == "ended" and not row.of_job and one.state != "retried":
            self.fault = "an end that the application wrote is written over"
        elif row.of_job > number:
            self.fault = "an older job is written over a newer one"
        elif one.state in ENDS and row.is_unread:
            self.fault = "an end is written over what no handler has read"

    def _number(self, one: Statement) -> int:
        """Of the job that this is about."""
        job, ended = self.job(one.key), cast("Ended", self.sees(one.key, "ended"))
        return ended.number if one.state in ENDS or job is None else job.number

    def store_again(self, one: Statement) -> None:
        self.insert_job(one.key, self.next_job(one.key), briefly=self.rules.give_up_soon)
        self._is_done(one, self.row(one.key))

    def give_up(self) -> None:
        """It waited for too long: what it did to the row is undone, and the row is late."""
        one = self.work.todo[0]
        locks = self.work.locks - {(one.key, "row")}
        self.work = self.work._replace(todo=self.work.todo[1:], locks=locks)
        row = self.row(one.key)
        if row is not None:
            self._is_late(one, row)

    def _is_done(self, one: Statement, row: Row | None) -> None:
        """Nothing is late any more; and a job begins, or must not."""
        if one.state != "beat" or not self.rules.beats_leave_late_rows:
            self.then(Statement("forget late row", one.key))
        if one.state == "running" and one.what == "write":
            self._begin(one.key, row)

    def forget_late_row(self, key: int) -> None:
        if self.late(key) is not None:
            self.lock(key, "late")
            self.put(key, "late", None)

    def _is_late(self, one: Statement, row: Row) -> None:
        if one.state == "beat":
            return
        if self.rules.late_rows:
            is_seen = one.what == "write" and one.state in ("running", "retried")
            is_seen |= one.what == "write queued" and self.rules.compare_what_was_queued
            self.then(Statement("note late row", one.key, one.state, int(is_seen)))
        if one.state == "running" and one.what == "write":
            if self.rules.read_when_shown:
                self._read(one.key)
            self._begin(one.key, row)

    def _read(self, key: int) -> None:
        """What is committed; whoever holds the row writes one of its own."""
        keys = list(self.world.keys)
        row = keys[key].row
        if row is not None:
            keys[key] = keys[key]._replace(row=row._replace(is_unread=False))
        self.world = self.world._replace(keys=tuple(keys))

    def note_late_row(self, one: Statement) -> None:
        """The number says whether the row was seen as it still is."""
        self.lock(one.key, "late")
        late = self.late(one.key)
        is_untouched = bool(one.claim) or (late is not None and late.is_untouched)
        noted = one.state if one.state == "retried" or not self.rules.state_of_then else ""
        self.put(one.key, "late", Late(is_untouched, noted))

    def _begin(self, key: int, row: Row | None) -> None:
        """A handler is given the row, or its job must not run."""
        job = self.job(key)
        if row is not None and row.shows in ("queued", "other") and not row.is_wanted:
            self.fault = "a row is worked on that is not wanted"
        if job is None or job.phase in WAITING:
            self.fault = "a row shows running and its job does not run"
        else:
            self.put(key, "job", job._replace(phase=Phase.HANDLED if row else Phase.REFUSED))
