"""The messages that are sent by NOTIFY, and their channels: read and written here alone.

A message is a hint that may be false: whoever may connect to the database can send any text. FORGED
says what a false one can do at worst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from hybrid_runner.model.jobs import parse_job_id
from hybrid_runner.model.signals import LONGEST_KEY

_LARGEST_PID = 2**31 - 1
_LARGEST_PLACE = 100_000
_LONGEST_NAME = 255
_LONGEST_RING = 86_400_000
"""Milliseconds: what is due later than in a day need not be told."""
_LONGEST_READING = 60_000
"""Milliseconds: an announcement of readers is good for a minute at most."""


# --- on a queue's channel


@dataclass(frozen=True, slots=True)
class JobDue:
    """A job can run: an insert, requeue, retry or amend made it due. The worker looks."""

    FORM: ClassVar = ""
    FORGED: ClassVar = "A look that finds nothing, 500 a second at most."
    text: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class JobLater:
    """A job is due within `ring_within`. The worker sets its timer; unless the message says in how
    many milliseconds, it looks and asks.
    """

    FORM: ClassVar = "later MILLISECONDS"
    FORGED: ClassVar = "A look, and a question when the next job is due; 200 a second at most."
    milliseconds: int | None = None

    @property
    def text(self) -> str:
        return "later" if self.milliseconds is None else f"later {self.milliseconds}"


@dataclass(frozen=True, slots=True)
class HelpWanted:
    """A full worker undid its mute, or a worker ended.

    Workers that sleep look until no muted insert is in flight.
    """

    FORM: ClassVar = "help"
    FORGED: ClassVar = (
        "Looks of workers that sleep, as if they fell asleep anew; 5 times a second at most."
    )
    text: ClassVar[str] = "help"


@dataclass(frozen=True, slots=True)
class QueueResumed:
    """The queue is no longer paused. The worker does as for `help`."""

    FORM: ClassVar = "help resumed"
    FORGED: ClassVar = "As `help`."
    text: ClassVar[str] = "help resumed"


@dataclass(frozen=True, slots=True)
class WorkerCame:
    """A worker of this queue has started. The others ask by a heartbeat which kinds it knows."""

    FORM: ClassVar = "here ID"
    FORGED: ClassVar = "A heartbeat, ten at once at most, then one every two seconds."
    worker_id: str

    @property
    def text(self) -> str:
        return f"here {self.worker_id}"


@dataclass(frozen=True, slots=True)
class WorkerLeft:
    """A worker of this queue ends. The others ask by a heartbeat who is left."""

    FORM: ClassVar = "gone ID"
    FORGED: ClassVar = "A heartbeat, ten at once at most, then one every two seconds."
    worker_id: str

    @property
    def text(self) -> str:
        return f"gone {self.worker_id}"


@dataclass(frozen=True, slots=True)
class RingPassedOn:
    """A full worker that a ring was for passes it on.

    The worker at this place in the ring's order looks.
    """

    FORM: ClassVar = "pass WORD PID PLACE"
    FORGED: ClassVar = (
        "A look; a full worker passes 50 a second on at most, else it calls for help."
    )
    later: bool
    """Whether the ring was JobLater, else JobDue: the words 'later' and 'now'."""
    ringer: int
    """The server process that rang."""
    place: int

    @property
    def text(self) -> str:
        return f"pass {'later' if self.later else 'now'} {self.ringer} {self.place}"


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """`cancel` was called for a running job. The worker that runs it asks by a heartbeat, and stops
    the attempt if the table says so.
    """

    FORM: ClassVar = "cancel ID"
    FORGED: ClassVar = "A heartbeat, ten at once at most, then one every two seconds."
    job_id: int

    @property
    def text(self) -> str:
        return f"cancel {self.job_id}"


QueueMessage = (
    JobDue
    | JobLater
    | HelpWanted
    | QueueResumed
    | WorkerCame
    | WorkerLeft
    | RingPassedOn
    | CancelAsked
)


def _queue_message(text: str) -> QueueMessage | None:
    """What is unknown makes a worker look, as an insert does.

    None: a known word with an argument that is of no use.
    """
    word, _, rest = text.partition(" ")
    match word:
        case "later":
            return JobLater(_number(rest, _LONGEST_RING))
        case "help":
            return QueueResumed() if rest == "resumed" else HelpWanted()
        case "here":
            return WorkerCame(rest) if _is_name(rest) else None
        case "gone":
            return WorkerLeft(rest) if _is_name(rest) else None
        case "pass":
            return _passed_on(rest)
        case "cancel":
            job_id = parse_job_id(rest)
            return None if job_id is None else CancelAsked(job_id)
        case _:
            return JobDue()


def _passed_on(rest: str) -> RingPassedOn | None:
    words = rest.split(" ")
    if len(words) != 3:
        return None
    ringer, place = _number(words[1], _LARGEST_PID), _number(words[2], _LARGEST_PLACE)
    return (
        None
        if ringer is None or place is None
        else RingPassedOn(words[0] == "later", ringer, place)
    )


# --- on other channels


@dataclass(frozen=True, slots=True)
class JobsRead:
    """Somebody reads event streams.

    Workers ask the database for how much longer, and publish changes of jobs meanwhile.
    """

    FORM: ClassVar = "MILLISECONDS"
    FORGED: ClassVar = "A question to the database, once a second at most."
    milliseconds: int

    @property
    def text(self) -> str:
        return str(self.milliseconds)


def _jobs_read(text: str) -> JobsRead | None:
    milliseconds = _number(text, 10 * _LONGEST_READING)
    return None if milliseconds is None else JobsRead(min(milliseconds, _LONGEST_READING))


@dataclass(frozen=True, slots=True)
class JobsChanged:
    """These jobs of one queue and kind changed; `more` of them had no room in the message.

    Event streams then read their snapshots.
    """

    FORM: ClassVar = "QUEUE KIND MORE ID ID …"
    FORGED: ClassVar = "None: nobody without a right in the schema knows the channel."
    queue: str
    kind: str
    more: int
    ids: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{self.queue} {self.kind} {self.more} {' '.join(map(str, self.ids))}"


def _jobs_changed(text: str) -> JobsChanged | None:
    words = text.split(" ")
    numbers = [number for word in words[2:] if (number := parse_job_id(word)) is not None]
    if len(words) < 4 or len(numbers) < len(words) - 2:
        return None
    more, *ids = numbers
    return JobsChanged(words[0], words[1], more, tuple(ids))


@dataclass(frozen=True, slots=True)
class SignalSent:
    """A signal with this key was committed; empty: many were.

    Two workers look for jobs that wait for it, 100 times a second at most.
    """

    FORM: ClassVar = "KEY"
    FORGED: ClassVar = "None: nobody without a right in the schema knows the channel."
    key: str
    """Empty: they were so many that keys are not named."""

    @property
    def text(self) -> str:
        return self.key


def _signal_sent(text: str) -> SignalSent | None:
    return SignalSent(text) if len(text.encode(errors="replace")) <= LONGEST_KEY else None


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """Applications changed rows of attached tables whose jobs they concern, or rows are late. The
    worker that looks after them looks at once.
    """

    FORM: ClassVar = "changes"
    FORGED: ClassVar = "Two looks that find nothing, ten times a second at most."
    text: ClassVar[str] = "changes"


@dataclass(frozen=True, slots=True)
class SourcesChanged:
    """A table was attached or detached. Workers send a heartbeat, and one is given the duty of
    looking after the rows.
    """

    FORM: ClassVar = "sources"
    FORGED: ClassVar = "A heartbeat, ten at once at most, then one every two seconds."
    text: ClassVar[str] = "sources"


def _sources_message(text: str) -> RowsChanged | SourcesChanged:
    return SourcesChanged() if text == "sources" else RowsChanged()


@dataclass(frozen=True, slots=True)
class SchedulesChanged:
    """A schedule was made, changed or removed, or one may fire again. The workers that look first
    ask when the next tick is due.
    """

    FORM: ClassVar = ""
    FORGED: ClassVar = (
        "A question of three workers when the next tick is due; ten a second at most."
    )
    text: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """By it a listener tests that notifications arrive; any text counts."""

    FORM: ClassVar = "proof"
    FORGED: ClassVar = "None: nobody knows the channel."
    text: ClassVar[str] = "proof"


# --- channels

SourcesMessage = RowsChanged | SourcesChanged
Message = (
    QueueMessage | JobsRead | JobsChanged | SignalSent | SourcesMessage | SchedulesChanged | Proof
)
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Channel(Generic[M]):
    """Where a type of message is sent. `read` makes one of a text; None for text that is none."""

    name: str
    read: Callable[[str], M | None]


_PREFIX = "hybrid_runner."

# No queue can have a name with a tilde.
READERS: Channel[JobsRead] = Channel(_PREFIX + "~readers", _jobs_read)
SOURCES: Channel[SourcesMessage] = Channel(_PREFIX + "~sources", _sources_message)
TICKS: Channel[SchedulesChanged] = Channel(_PREFIX + "~ticks", lambda _: SchedulesChanged())


def channel_of(queue: str) -> Channel[QueueMessage]:
    """The channel of a queue."""
    return Channel(_PREFIX + queue, _queue_message)


def changes_channel(name: str) -> Channel[JobsChanged]:
    """The channel on which event streams hear of changes; the database knows its name."""
    return Channel(name, _jobs_changed)


def signals_channel(name: str) -> Channel[SignalSent]:
    """The channel on which workers hear of signals; the database knows its name."""
    return Channel(name, _signal_sent)


def proof_channel(token: str) -> Channel[Proof]:
    """The channel of one listener, for as long as it has this connection."""
    return Channel(f"{_PREFIX}~proof~{token}", lambda _: Proof())


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NAME


def _number(text: str, largest: int) -> int | None:
    number = parse_job_id(text)
    return number if number is not None and number <= largest else None
