"""What can be checked of a schedule without Postgres; each raises ConfigurationError, in the words
of the functions in sql/functions that have the same names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from hybrid_runner.durations import Duration, parse_duration
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.jsontext import printable

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_LONGEST_SHOWN: Final = 60
_LONGEST_CRON: Final = 255
_LONGEST_ZONE: Final = 64
_FIELDS: Final = 5


def check_name(field: str, name: object, most: int) -> None:
    """The name of a schedule, a kind or a queue."""
    if not isinstance(name, str) or len(name) > most or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{field} must be 1 to {most} letters, digits and _ . : / -, not {shown(name)}"
        )


def check_cron(cron: object) -> None:
    """That there are five fields; what is in them, Postgres knows."""
    if not isinstance(cron, str):
        raise ConfigurationError(
            f"cron must be a text of five fields, such as '30 2 * * *', not {shown(cron)}"
        )
    if not _is_storable(cron):
        raise ConfigurationError(f"cron: Postgres has no text such as {shown(cron)}")
    if (size := len(cron.encode(errors="replace"))) > _LONGEST_CRON:
        raise ConfigurationError(
            f"cron: an expression has at most {_LONGEST_CRON} bytes, not {size}"
        )
    count = len(cron.split())
    if count != _FIELDS and not cron.lstrip().startswith("@"):
        finer = ": below a minute use every" if count == _FIELDS + 1 else ""
        raise ConfigurationError(
            f"cron: five fields are needed (minute hour day month weekday), not {count}{finer}"
        )


def check_interval(
    field: str, given: Duration | None, lowest: timedelta, highest: timedelta, bounds: str
) -> timedelta | None:
    """A duration within these bounds."""
    if given is None:
        return None
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given < 0:
        given = timedelta(seconds=max(given, -1e9))
    if not isinstance(given, timedelta):
        try:
            given = parse_duration(given)
        except ConfigurationError as error:
            raise ConfigurationError(f"{field}: {error}") from None
    if not lowest <= given <= highest:
        raise ConfigurationError(f"{field} must be {bounds}, not {interval_text(given)}")
    return given


def check_word(field: str, word: object, words: Sequence[str]) -> None:
    """One of these words."""
    if isinstance(word, str) and word in words:
        return
    meant = nearest_word(word, words) if isinstance(word, str) else None
    guess = f": did you mean {meant}?" if meant else ""
    listed = f"{', '.join(words[:-1])} or {words[-1]}"
    raise ConfigurationError(f"{field} must be {listed}, not {shown(word)}{guess}")


def check_zone(zone: object) -> None:
    """What may be a zone; which there are, Postgres knows."""
    if (
        not isinstance(zone, str)
        or not 1 <= len(zone.encode(errors="replace")) <= _LONGEST_ZONE
        or not _is_storable(zone)
    ):
        raise ConfigurationError(
            f"timezone: there is no {shown(zone)}: name a place, such as Europe/Paris, or UTC"
        )


def check_moment(field: str, moment: object) -> datetime | None:
    """A time in some zone."""
    if moment is None or (isinstance(moment, datetime) and moment.tzinfo is not None):
        return moment
    raise ConfigurationError(
        f"{field} must be a datetime with a time zone: use datetime.now(UTC) or .astimezone()"
    )


def _is_storable(text: str) -> bool:
    return printable(text, len(text)) == text


def nearest_word(given: str, words: Sequence[str]) -> str | None:
    """The one that was meant: it is the same but for capitals and signs, or one letter is wrong,
    missing or too many, or two have changed places.
    """
    bare = _bare(given[:100])
    if len(bare) < 2:  # one letter is like everything
        return None
    if same := next((word for word in words if _bare(word) == bare), None):
        return same
    return next((word for word in words if _is_one_edit(_bare(word), bare)), None)


def _bare(word: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", word.lower())


def _is_one_edit(word: str, given: str) -> bool:
    at = next(
        (n for n, (a, b) in enumerate(zip(word, given, strict=False)) if a != b),
        min(len(word), len(given)),
    )
    rest, other = word[at:], given[at:]
    return (
        rest == other[1:]
        or rest[1:] == other
        or rest[1:] == other[1:]
        or (rest[:2] == other[1::-1] and rest[2:] == other[2:])
    )


def interval_text(length: timedelta) -> str:
    """As Postgres writes it."""
    sign, size = ("-", -length) if length < timedelta(0) else ("", length)
    hours, rest = divmod(size.seconds, 3600)
    clock = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    if size.microseconds:
        clock += f".{size.microseconds:06}".rstrip("0")
    days = f"{sign}{size.days} day{'' if size.days == 1 and not sign else 's'}" if size.days else ""
    if not days:
        return f"{sign}{clock}"
    return days if clock == "00:00:00" else f"{days} {sign}{clock}"


def shown(value: object) -> str:
    """What was given, quoted and short, without what a terminal would obey."""
    if value is None:
        return "NULL"
    text = str(value)
    cut = "".join(sign if sign.isprintable() else "?" for sign in text[:_LONGEST_SHOWN])
    return f"'{cut}{'…' if len(text) > _LONGEST_SHOWN else ''}'"
