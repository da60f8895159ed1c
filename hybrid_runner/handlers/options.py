"""The options of a job beside kind and payload: one list for Python, the command line and
docs/enqueue.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypedDict, get_type_hints

from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.jobs import OnConflict
from hybrid_runner.storage.connections.statements import Fetches


class JobOptions(TypedDict, total=False):
    """Options of any new job; None counts as not given."""

    queue: Annotated[
        str | None,
        "the queue it waits in (default: that of the kind's handler; `default` for a kind that no"
        " worker has declared)",
    ]
    priority: Annotated[int | None, "0 (first) to 9 (default: 5)"]
    run_at: Annotated[
        datetime | None, "not before this time, such as 2030-01-31T08:00+01:00; instead of `delay`"
    ]
    delay: Annotated[
        Duration | None, "not before so long from now, such as 30s, 5m or 1h; by the server's clock"
    ]
    max_attempts: Annotated[
        int | None, "how often it may be tried, at most as its handler says (default)"
    ]
    timeout: Annotated[
        Duration | None, "how long one attempt may take, at most as its handler says (default)"
    ]
    finish_by: Annotated[
        datetime | None,
        "an attempt that runs then is stopped, none starts after it; no retry goes past it, and"
        " the last look of a snooze is a second before it: then the job fails",
    ]
    max_snoozes: Annotated[
        int | None, "how often it may delay itself; then it fails (default: as its handler says)"
    ]
    max_duration: Annotated[
        Duration | None,
        "how long it may go on from the start of its first attempt, waits included: the last look"
        " is at the deadline, then it fails (default: as its handler says)",
    ]
    finish_within: Annotated[
        Duration | None,
        "`finish_by`, so long after it is first due, unless that is given (default: as its handler"
        " says)",
    ]
    start_by: Annotated[
        datetime | None,
        "if its first attempt has not begun by then it ends `cancelled`, with the error `Expired`",
    ]
    data: Annotated[Any, "its first memory, `job.data`: whatever JSON can hold"]


class CollectManyOptions(JobOptions, total=False):
    """Options of `enqueue_many` beside `on_conflict="collect"`; None counts as not given."""

    connection: Annotated[Fetches | None, "an asyncpg connection: the job joins its transaction"]
    max_wait: Annotated[
        Duration | None,
        "with `delay` and a key: later calls put the job off, and no further than so long after"
        " the first one",
    ]
    max_items: Annotated[
        int | None,
        "with `collect`: so many items one job collects, 1 to 100000 (default: 1000); what comes"
        " then goes into a job behind it",
    ]


class CollectOptions(CollectManyOptions, total=False):
    """Options of `enqueue` beside `on_conflict="collect"`; None counts as not given."""

    key: Annotated[str | None, "a name that at most one live job has, of 1 to 512 bytes"]


class EnqueueManyOptions(CollectManyOptions, total=False):
    """Options of `enqueue_many`; None counts as not given."""

    on_conflict: Annotated[
        OnConflict | None,
        "what if a live job has its key: `exists` (default), `replace`, `error`, `follow` or"
        " `collect`",
    ]
    unique_for: Annotated[
        Duration | None,
        "with `exists` or `error`: so long its key is taken, also once the job has ended; at most"
        " 366 days",
    ]


class EnqueueOptions(EnqueueManyOptions, total=False):
    """Options of `enqueue`; None counts as not given."""

    key: Annotated[str | None, "a name that at most one live job has, of 1 to 512 bytes"]


class NewJobOptions(JobOptions, total=False):
    """Options of a job that is stored with the end of another one; None counts as not given."""

    key: Annotated[str | None, "a name that at most one live job has, of 1 to 512 bytes"]


def option_texts() -> dict[str, str]:
    """Each option of `enqueue`, and what it does."""
    hints = get_type_hints(EnqueueOptions, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


NAMES = EnqueueOptions.__optional_keys__
NEW_JOB_NAMES = NewJobOptions.__optional_keys__


def given(options: Mapping[str, Any], names: frozenset[str] = NAMES) -> dict[str, Any]:
    """The options that are not None; ConfigurationError for a name that is none of these."""
    for name in options.keys() - names:
        if name in NAMES:
            raise ConfigurationError(
                f"a job that is stored with the end of another one has no option {name!r}: it"
                " joins the transaction of that end, and leaves a key to the live job that has it"
            )
        near = difflib.get_close_matches(name, names, n=1)
        guess = f"did you mean {near[0]!r}?" if near else "see docs/enqueue.md"
        raise ConfigurationError(f"enqueue has no option {name!r}: {guess}")
    return {name: value for name, value in options.items() if value is not None}
