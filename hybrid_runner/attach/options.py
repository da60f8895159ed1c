"""The options of `attach` beside the table, its kind, its words and its columns: one list for
Python, the command line and docs/sources.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

from hybrid_runner.durations import Duration
from hybrid_runner.errors import ConfigurationError


class AttachOptions(TypedDict, total=False):
    """Options of `attach`; None counts as not given."""

    when: Annotated[
        str | None,
        "a condition over the row's columns, in SQL: which rows are worked on, of those that have"
        " the queued word (default: all)",
    ]
    cancel_when: Annotated[
        str | None,
        "a condition that ends the job of a row when it becomes true (default: the status is the"
        " cancelled word, if that one means nothing else)",
    ]
    queue: Annotated[
        str | None,
        "the queue of its jobs (default: that of the kind's handler; `default` for a kind that no"
        " worker has declared)",
    ]
    priority: Annotated[
        str | None, "an expression over the row: 0 (first) to 9; NULL is 5, the default"
    ]
    run_at: Annotated[
        str | None, "an expression over the row: not before this time; NULL is now, the default"
    ]
    key: Annotated[
        str | Sequence[str] | None,
        "the columns that tell rows apart, for a table without a primary key; they must be unique"
        " and not null",
    ]
    payload: Annotated[
        str | Sequence[str] | None,
        "the columns that the handler gets (default: all but those of type bytea)",
    ]
    on_delete: Annotated[
        Literal["cancel", "ignore"] | None,
        "what becomes of the job of a row that is deleted: `cancel` (default) or `ignore`",
    ]
    backfill: Annotated[
        Literal["all", "none"] | None,
        "rows that are wanted already: `all` get a job (default); with `none` the row check does"
        " not look for rows that were missed either, since it could not tell them apart",
    ]
    scan: Annotated[
        bool | None,
        "let the row check read the whole table, where no index would help and it has more than"
        " 100,000 rows",
    ]
    trust_owner: Annotated[
        bool | None,
        "the table belongs to another role than hybrid_runner: that role is trusted like a worker",
    ]
    guess: Annotated[bool | None, "take columns and words by their usual names, and say which"]
    check: Annotated[bool | None, "say what is wrong or would be done, and change nothing"]
    sql: Annotated[bool | None, "give a script for psql that does the same, and change nothing"]
    wait: Annotated[
        Duration | None,
        "how long to try for the locks, two seconds at a time (default: 1m)",
    ]


NAMES = AttachOptions.__optional_keys__


def option_texts() -> dict[str, str]:
    """Each option of `attach`, and what it does."""
    hints = get_type_hints(AttachOptions, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None; ConfigurationError for a name that is none of these."""
    for name in options.keys() - NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        guess = f"did you mean {near[0]!r}?" if near else "see docs/sources.md"
        raise ConfigurationError(f"attach has no option {name!r}: {guess}")
    return {name: value for name, value in options.items() if value is not None}
