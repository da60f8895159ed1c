"""What a world of sources is made of: what is committed about each row, and transactions that hold
what they wrote until they commit, as Postgres does in READ COMMITTED.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Literal, NamedTuple

Shows = Literal["queued", "running", "ended", "other"]
State = Literal["running", "queued", "snoozed", "completed", "cancelled", "retried"]

Decide = Callable[[str, str, bool, bool, bool], str]
"""State of the job, word of the row, is it wanted, was it queued, is it untouched: what to do."""

WORDS: dict[str, Shows] = {
    "running": "running",
    "queued": "queued",
    "retried": "queued",
    "snoozed": "running",  # where nobody asked for a word of its own
    "completed": "ended",
    "cancelled": "ended",
}
"""What a row shows once a job's state was written."""


class Phase(IntEnum):
    """Where a job is."""

    QUEUED = 0
    SNOOZED = 1
    CLAIMED = 2  # its row does not show it yet
    HANDLED = 3
    REFUSED = 4  # its row was not wanted: it is going to end
    ORPHANED = 5  # its worker is taken for dead


WAITING = (Phase.QUEUED, Phase.SNOOZED)


class Job(NamedTuple):
    """The live job of a row."""

    number: int
    phase: Phase = Phase.QUEUED
    claim: int = 0
    told_by: Literal["", "row", "somebody"] = ""
    """Who asked it to stop."""


class Row(NamedTuple):
    """A row of the application's table."""

    shows: Shows
    of_job: int = 0
    """Whose end or whose running it shows; 0: the application wrote it."""
    is_unread: bool = False
    """Somebody wanted it, and no handler has read it since."""
    is_fit: bool = True
    """What else the condition asks for."""

    @property
    def is_wanted(self) -> bool:
        """The whole condition."""
        return self.shows == "queued" and self.is_fit


class Late(NamedTuple):
    """A row of late_rows."""

    is_untouched: bool = False
    """A handler read the row while it could not be written, and nobody has written it since."""
    noted: str = ""
    """What the job was, where that is what is written later; retried, if it was that."""


class Ended(NamedTuple):
    """The last job of the row that is in the archive."""

    number: int = 0
    state: str = "completed"
    was_queued: bool = False
    claim: int = 0


class Key(NamedTuple):
    """All that is committed about one row."""

    row: Row | None = Row("ended")
    job: Job | None = None
    late: Late | None = None
    noted: int = 0
    """Rows of row_changes."""
    ended: Ended = Ended()


Field = Literal["row", "job", "late", "noted", "ended"]
Cell = tuple[int, Field]
"""A field of a key: what is locked, and written."""


class Statement(NamedTuple):
    """One statement of a transaction."""

    what: str
    key: int = 0
    state: str = ""
    claim: int = 0
    """Under which the job is meant."""

    def __str__(self) -> str:
        return f"{self.what} {self.key} {self.state}".strip()


COMMIT = Statement("commit")


class Work(NamedTuple):
    """A transaction that is under way."""

    who: str
    todo: tuple[Statement, ...] = ()
    """Its next statements."""
    wrote: tuple[tuple[Cell, object], ...] = ()
    locks: frozenset[Cell] = frozenset()

    def having(self, cell: Cell, value: object) -> Work:
        """It writes, and so locks."""
        wrote = {**dict(self.wrote), cell: value}
        return self._replace(wrote=tuple(sorted(wrote.items())), locks=self.locks | {cell})


class Budget(NamedTuple):
    """How much may still happen."""

    edits: int = 2
    """Statements of the application."""
    crashes: int = 0
    put_backs: int = 0
    beats: int = 0
    cancels: int = 0
    """Jobs that somebody cancels, or runs again, by their number."""
    retries: int = 0
    swallows: int = 0
    """Writes that a trigger of the table drops."""


class World(NamedTuple):
    """All that is shared, and who does what."""

    keys: tuple[Key, ...]
    left: Budget
    works: tuple[Work, ...] = ()
    fault: str = ""


class Rules(NamedTuple):
    """What the parts must keep; tests drop them one at a time."""

    skip_locked: bool = True
    """Nobody waits for a row of the application."""
    triggers_only_insert: bool = True
    """Dropped: the trigger of a cancelled row asks the job itself to stop."""
    late_rows: bool = True
    """What could not be written is remembered."""
    one_transaction: bool = True
    """A job ends in the transaction that writes its row."""
    check_under_lock: bool = True
    """Who writes later looks again for a live job when it has the row."""
    later_only_untouched: bool = True
    """Nor does it write that a job runs over what was changed since the job's handler read it."""
    hold_late_row: bool = True
    """Who writes later has the late row locked."""
    state_of_then: bool = True
    """Who writes later writes what the job is then. Dropped: what it was when that was noted."""
    fence_by_claim: bool = True
    """Who shows a claim has the job locked, and looks whether it is still its own."""
    read_when_shown: bool = True
    """A handler is given the row as of when it was shown. Dropped: as of the claim."""
    look_at_changed_rows: bool = True
    """A change means nothing if the row is not stopped, or gone, by now."""
    lock_before_looking: bool = True
    """Who looks at a changed row has its job locked."""
    tell_only_the_shown: bool = True
    """A claimed job whose row does not show it yet is not told to stop: who shows it will see."""
    changed_is_not_queued: bool = True
    """Who ends a queued job because of its row says that the row was not queued."""
    compare_what_was_queued: bool = True
    """Who ends a queued job and cannot write its row notes which row it saw. Dropped: whoever
    writes it later believes that it still is as it was.
    """
    beats_leave_late_rows: bool = True
    """A heartbeat leaves it to others to write what is late."""
    note_conflicts: bool = True
    """A row inserted beside a live job of the same key is noted, and looked at after the commit."""
    look_at_what_was_written: bool = True
    """A write that a trigger drops makes the row late."""
    retry_locks_late_row: bool = True
    """Who runs an ended job again lets whoever writes its row later finish first."""
    see_what_was_refused: bool = True
    """Of a row that cannot show that its job runs the version is noted. Dropped: it is unknown."""
    give_up_soon: bool = True
    """Who writes later does not wait for long for somebody who makes a job."""
