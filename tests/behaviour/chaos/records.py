"""What was promised, what ran, and what is in the tables, as values for the checker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from tests.behaviour.chaos.journal import PRODUCER, REFUSALS, RUNS, SIGNALS, entries


class Fate(Enum):
    """What the producer knows of a job that it sent."""

    KEPT = auto()
    """The commit was acknowledged."""
    DOUBTFUL = auto()
    """The answer to the commit never came: stored or not, but never half."""
    VOID = auto()
    """Rolled back: it must not be anywhere."""
    EXISTED = auto()
    """A live job held its key: it must not be anywhere, and the holder must be."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One job that the producer sent; `n` is its number there, which is in its payload too."""

    n: int
    kind: str
    key: str | None = None
    times: int = 0
    """How often a handler of this kind snoozes, or raises."""
    due: float = 0.0
    fate: Fate = Fate.DOUBTFUL
    id: int | None = None
    """The id of the job, or of the job that holds its key."""
    answers: tuple[str, ...] = ()
    """What `cancel()` said, each time somebody asked; empty when its answer never came."""


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a handler."""

    name: str
    n: int
    id: int
    claim: int
    attempt: int
    pid: int
    began: float
    ended: float | None = None
    how: str | None = None
    """returned, snoozed, refused, quit, raised or cancelled; None: the process died meanwhile."""


@dataclass(frozen=True, slots=True)
class Archived:
    """One row of the archive."""

    id: int
    n: int
    kind: str
    state: str
    key: str | None = None
    attempt: int = 1
    max_attempts: int | None = None
    claim: int | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    result: Any = None


@dataclass(frozen=True, slots=True)
class Follower:
    """A row of the archive that another job's end has stored."""

    id: int
    kind: str
    state: str
    of: int
    """The job that it follows."""
    named: bool
    """Whether that one's row names it."""
    claim: int | None = None
    """The claim under which that one ended, as it was told."""
    said: str | None = None
    """How that one ended, as it was told."""


@dataclass(frozen=True, slots=True)
class Left:
    """One row that is still in the table of live jobs."""

    id: int
    n: int
    what: str
    """Its state and whatever may explain why it is there."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A transaction of the producer that found no room for its notification."""

    n: int
    """The first of its jobs."""
    began: float
    why: str


@dataclass(frozen=True, slots=True)
class Records:
    """Everything that the checker looks at."""

    promises: dict[int, Promise]
    runs: list[Run]
    archive: list[Archived]
    left: list[Left]
    refusals: list[Refusal] = field(default_factory=list)
    followers: list[Follower] = field(default_factory=list)
    signals: dict[int, set[str]] = field(default_factory=dict)
    """The marks that were sent, by the number of the job that gathers them."""

    @classmethod
    def read(
        cls, folder: Path, archive: list[Archived], left: list[Left], followers: list[Follower]
    ) -> Records:
        """The journals of a folder beside the tables."""
        return cls(
            read_promises(entries(folder / PRODUCER)),
            read_runs(entries(*folder.glob(RUNS.format("*")))),
            archive,
            left,
            list(read_refusals(entries(*folder.glob(REFUSALS)))),
            followers,
            read_signals(entries(*folder.glob(SIGNALS))),
        )


def read_promises(lines: Iterable[dict[str, Any]]) -> dict[int, Promise]:
    """The producer's journal, by the numbers of its jobs."""
    promises: dict[int, Promise] = {}
    transactions: dict[int, list[int]] = {}
    for line in lines:
        match line["what"]:
            case "sent":
                transactions[line["transaction"]] = [job["n"] for job in line["jobs"]]
                for job in line["jobs"]:
                    due = line["at"] + job["delay"]
                    promises[job["n"]] = Promise(
                        job["n"], job["kind"], job["key"], job["times"], due
                    )
            case "kept":
                for n, job_id, outcome in line["stored"]:
                    fate = Fate.KEPT if outcome == "inserted" else Fate.EXISTED
                    promises[n] = replace(
                        promises[n], fate=fate, id=job_id, due=max(line["at"], promises[n].due)
                    )
            case "void":
                for n in transactions[line["transaction"]]:
                    promises[n] = replace(promises[n], fate=Fate.VOID)
            case "cancelling":
                promises[line["n"]] = replace(
                    promises[line["n"]], answers=(*promises[line["n"]].answers, "")
                )
            case "cancelled":
                promises[line["n"]] = replace(
                    promises[line["n"]], answers=(*promises[line["n"]].answers[:-1], line["answer"])
                )
            case other:
                raise ValueError(f"the producer's journal says {other!r}")
    return promises


def read_refusals(lines: Iterable[dict[str, Any]]) -> Iterator[Refusal]:
    """The producer's journal of refusals."""
    for line in lines:
        yield Refusal(line["transaction"], line["began"], line["why"])


def read_signals(lines: Iterable[dict[str, Any]]) -> dict[int, set[str]]:
    """The producer's journal of signals."""
    marks: dict[int, set[str]] = {}
    for line in lines:
        marks.setdefault(line["n"], set()).add(line["mark"])
    return marks


def read_runs(lines: Iterable[dict[str, Any]]) -> list[Run]:
    """The handlers' journals."""
    runs: dict[str, Run] = {}
    for line in lines:
        if line["what"] == "began":
            runs[line["run"]] = Run(
                line["run"],
                line["n"],
                line["id"],
                line["claim"],
                line["attempt"],
                line["pid"],
                line["at"],
            )
        else:
            runs[line["run"]] = replace(runs[line["run"]], ended=line["at"], how=line["how"])
    return list(runs.values())
