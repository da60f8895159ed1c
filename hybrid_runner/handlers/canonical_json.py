"""JSON as jsonb prints it, without the zeros at the end of a fraction: one text for all that jsonb
takes for equal, here and in sql/functions/key_of.sql.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from hybrid_runner.jsontext import NotStorable, check

_DIGITS_BEFORE, _DIGITS_BEHIND = 131_072, 16_383
"""How many digits a number of Postgres has at most, before and behind its point."""
_LARGEST_EXPONENT = 2**30
"""As it may be written, also of a zero."""


class _Number(str):
    """A number, as Postgres prints it."""

    __slots__ = ()


def read_exactly(text: str, what: str) -> Any:
    """The value of a JSON text, with all digits of its numbers; NotStorable when jsonb cannot hold
    it.
    """
    try:
        return json.loads(
            check(text.encode(), what),
            parse_float=_number,
            parse_int=_number,
            parse_constant=_number,
        )
    except NotStorable as error:
        raise NotStorable(str(error) if what in str(error) else f"{what} {error}") from None
    except UnicodeEncodeError:
        raise NotStorable(f"{what} holds half of a sign, which Postgres cannot store") from None
    except RecursionError:
        raise NotStorable(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise NotStorable(f"{what} is not JSON: {error}") from None


def canonical(value: Any, what: str) -> str:
    """The text of what `read_exactly` gave; NotStorable when jsonb cannot hold it."""
    try:
        text = _text(value)
        text.encode()
    except UnicodeEncodeError:
        raise NotStorable(f"{what} holds half of a sign, which Postgres cannot store") from None
    except RecursionError:
        raise NotStorable(f"{what} is nested too deeply") from None
    return text


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _Number():
            return str(value)
        case str():
            return encode_basestring(value)
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            members = sorted(value.items(), key=lambda member: _rank(member[0]))
            return f"{{{', '.join(f'{_text(name)}: {_text(part)}' for name, part in members)}}}"
        case _:
            raise TypeError(f"{type(value).__name__} is none of JSON's")


def _rank(name: str) -> tuple[int, bytes]:
    """As jsonb sorts members: the shorter first."""
    encoded = name.encode()
    return len(encoded), encoded


def _number(text: str) -> _Number:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise NotStorable(f"holds the number {text[:40]}, which Postgres cannot") from None
    exponent = number.as_tuple().exponent
    if (
        not isinstance(exponent, int)
        or not -_DIGITS_BEHIND <= exponent < _LARGEST_EXPONENT
        or (number and number.adjusted() >= _DIGITS_BEFORE)
    ):
        raise NotStorable(f"holds the number {text[:40]}, which Postgres cannot")
    if not number:
        return _Number("0")
    plain = format(number, "f")
    return _Number(plain.rstrip("0").rstrip(".") if "." in plain else plain)
