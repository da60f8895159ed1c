"""How the fake warehouse behaves: each script is one way in which real ones are slow to say what is
so. All times are seconds since the query was started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Trouble = Literal["error", "cut", "slow", "unauthorized"]
"""A 500; a connection that breaks off; an answer that comes too late; a token that is refused."""
NEVER = float("inf")


@dataclass(frozen=True)
class Seen:
    """What the warehouse says at one moment, by each of its ways to ask."""

    status: Literal["Processing", "Complete", "Error"]
    error: str
    hint: bool
    """The status names a time at which the query is said to have ended."""
    is_running: bool
    rows: int | None
    """How many can be counted; None: the table cannot be asked yet."""


@dataclass(frozen=True)
class Script:
    """One query's life."""

    about: str
    finishes: float = 8
    """When its rows are complete."""
    says_complete: float = 8
    """When the status says so."""
    queryable: float = 0
    """From when on its table can be asked; until it has finished there are no rows in it."""
    rows: int = 4711
    hints: tuple[tuple[float, float], ...] = ()
    """When its status carries the hint, right or wrong."""
    pauses: tuple[tuple[float, float], ...] = ()
    """When it is said not to run, although it does."""
    error: str = ""
    """Reported once it has finished."""
    troubles: tuple[tuple[float, float, Trouble], ...] = ()
    """When requests about it come to nothing, and how."""

    def at(self, seconds: float) -> Seen:
        ended = seconds >= self.finishes
        if ended and self.error:
            return Seen("Error", self.error, hint=True, is_running=False, rows=None)
        rows = self.rows if ended else 0
        return Seen(
            "Complete" if seconds >= self.says_complete else "Processing",
            "",
            hint=_within(seconds, self.hints),
            is_running=not ended and not _within(seconds, self.pauses),
            rows=rows if seconds >= self.queryable else None,
        )

    def trouble_at(self, seconds: float) -> Trouble | None:
        return next(
            (kind for begins, ends, kind in self.troubles if begins <= seconds < ends), None
        )


def _within(seconds: float, windows: tuple[tuple[float, float], ...]) -> bool:
    return any(begins <= seconds < ends for begins, ends in windows)


SCRIPTS = {
    "plain": Script("ends after 8 s, and says so"),
    "late status": Script("has its rows after 8 s, and is called complete after 90", 8, 90),
    "late rows": Script("is complete after 8 s; its table can be asked after 30", queryable=30),
    "no rows": Script("finds nothing, which is an answer", rows=0),
    "never there": Script("is complete after 8 s; its table never appears", queryable=NEVER),
    "only a hint": Script(
        "ends after 12 s and finds nothing; its status never says so, but hints at it",
        finishes=12,
        says_complete=NEVER,
        hints=((12, NEVER),),
        rows=0,
    ),
    "wrong hints": Script(
        "is said to have ended at 6 s, stands still twice, and runs on to 100 s",
        finishes=100,
        says_complete=NEVER,
        hints=((6, NEVER),),
        pauses=((6, 16), (50, 60)),
    ),
    "forgotten": Script(
        "ends after 20 s; neither its status nor a hint ever says so",
        finishes=20,
        says_complete=NEVER,
        rows=0,
    ),
    "broken": Script("reports an error after 8 s", error="division by zero in line 3"),
    "bad network": Script(
        "ends after 40 s; meanwhile requests fail, break off, take too long, lose their token",
        40,
        40,
        troubles=((1, 5, "error"), (5, 12, "cut"), (12, 20, "slow"), (20, 25, "unauthorized")),
    ),
    "never ends": Script("runs until its time is used up", NEVER, NEVER),
}


def script_of(sql: str) -> Script:
    """The script that a query names in its first line, as `-- plays: late rows`; else `plain`."""
    first = sql.partition("\n")[0]
    return SCRIPTS.get(first.partition("-- plays:")[2].strip(), SCRIPTS["plain"])
