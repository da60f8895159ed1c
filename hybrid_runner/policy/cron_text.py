"""Whether a text is a cron expression: the same lines as sql/functions/next_fire.sql says, said
where the text was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from hybrid_runner.display import one_line
from hybrid_runner.errors import ConfigurationError

NICKNAMES: Final = frozenset(
    {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
)
_LONGEST: Final = 256
_PART = re.compile(r"(?:(\*)|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")
_WORD = re.compile(r"[A-Z]+")


class _Field(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: Mapping[str, int] = {}


def _numbered(words: str, first: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), first)}


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, _numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1)),
    _Field("weekday", 0, 7, _numbered("SUN MON TUE WED THU FRI SAT", 0)),
)


def check_cron(cron: object) -> str:
    """The expression; ConfigurationError names the field that is wrong."""
    if not isinstance(cron, str):
        raise ConfigurationError(
            f"cron must be a text of five fields, such as '30 2 * * *', not {_shown(cron)}"
        )
    words = cron.split()
    if len(words) == 1 and words[0].startswith("@"):
        if words[0].lower() not in NICKNAMES:
            raise ConfigurationError(
                f"cron: there is no {_shown(words[0])}: use {', '.join(sorted(NICKNAMES))}"
            )
        return cron
    if len(cron) > _LONGEST or len(words) != len(_FIELDS):
        more = ": below a minute use every" if len(words) == len(_FIELDS) + 1 else ""
        raise ConfigurationError(
            f"cron: five fields are needed (minute hour day month weekday), not {len(words)}{more}"
        )
    for field, text in zip(_FIELDS, words, strict=True):
        _check_field(field, text)
    return cron


def _check_field(field: _Field, text: str) -> None:
    if field.name == "day" and text.upper() == "L":
        return
    for given in text.split(","):
        part = _WORD.sub(lambda word: str(field.names.get(word[0], word[0])), given.upper())
        found = _PART.fullmatch(part)
        if found is None:
            raise ConfigurationError(
                f"cron: {field.name} {_shown(given)} is none of *, n, n-m, */n and lists of these"
            )
        low = int(found[2] or field.lowest)
        high = int(found[3] or (found[2] if found[2] and not found[4] else field.highest))
        if not field.lowest <= low <= high <= field.highest or found[4] in ("0", "00"):
            raise ConfigurationError(
                f"cron: {field.name} {_shown(given)} is outside {field.lowest} to {field.highest}"
            )


def _shown(value: object) -> str:
    text = one_line(str(value))
    return repr(text if len(text) <= 60 else f"{text[:60]}…")  # as it reads well
