"""Takes passwords out of log lines, whoever put them there: the last line of defence, not the
first.

No text can hold up the process: the patterns take linear time, each is tried from each position
once and reads on only to where the next try begins; very long texts are neither searched nor shown
in full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from itertools import count, islice
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

HIDDEN = "***"
SHORTEST = 3
"""Shortest secret that is searched for: shorter ones would be found by chance in every line. As a
password in a DSN or after `password=` they are hidden too.
"""
LONGEST_TEXT = 32_768
_LONGEST_SECRET = 8192
_DEEPEST = 8
_MOST_VALUES = 1000

_IN_POSTGRES_URL = re.compile(r"(\bpostgres(?:ql)?://[^\s:/@'\"]*:)([^\s'\"]*)", re.IGNORECASE)
_IN_ANY_URL = re.compile(r"(://[^\s:/@'\"]*):[^\s/'\"]+@")
_NAMED = re.compile(
    r"""\b(\w*password|passwd|pwd)(\\*["']?\s*[=:]\s*(?:\\+["'])?)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|['"]?[^\s&,;'"]+)""",
    re.IGNORECASE | re.DOTALL,
)
_IS_NAME = re.compile(r"\w*password|passwd|pwd", re.IGNORECASE)
_PAIRS = re.compile(r"[=:]")
_SHORTEST_KEY = 12
_PARTS = re.compile(r"[/?#@:]")


class Redaction:
    """Finds some secrets by their value, and all passwords by their place in a DSN or after their
    name.
    """

    def __init__(self, dsns: Iterable[str | None] = (), secrets: Iterable[str | None] = ()) -> None:
        known = {secret for dsn in dsns if dsn for secret in secrets_of(dsn)} | {
            secret for secret in secrets if secret
        }
        forms = {form for secret in known for form in _forms(secret) if len(form) >= SHORTEST}
        alternatives = "|".join(_bounded(form) for form in sorted(forms, key=len, reverse=True))
        self._known = re.compile(alternatives) if forms else None

    def clean(self, text: str, most: int = LONGEST_TEXT) -> str:
        """The text without passwords; of a text longer than `most`, its beginning and its end."""
        if len(text) <= most:
            return self._cleaned(text)
        # More is cleaned than shown: a password that is cut in two is not recognised.
        half = most // 2
        begin = self._cleaned(text[: half + _LONGEST_SECRET])[:-_LONGEST_SECRET]
        end = self._cleaned(text[-half - _LONGEST_SECRET :])[_LONGEST_SECRET:]
        return f"{begin}… ({len(text) - most:,} characters are left out) …{end}"

    def within(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Clean values before they become JSON, which writes some characters differently; values
        that JSON cannot hold become text.
        """
        return self._fields(fields, 0, count())

    def _within(self, value: object, depth: int, visited: Iterator[int]) -> object:
        if depth > _DEEPEST or next(visited) > _MOST_VALUES:
            return "…"
        match value:
            case None | bool():
                return value
            case float():
                return float(value)
            case int() if -(2**63) <= value < 2**64:
                return int(value)
            case dict():
                return self._fields(value, depth, visited)
            case list() | tuple():
                return [
                    self._within(inner, depth + 1, visited) for inner in islice(value, _MOST_VALUES)
                ]
            case date() | time():
                return value.isoformat()
            case _:
                return without_surrogates(
                    self.clean(value if isinstance(value, str) else shown(value))
                )

    def _fields(
        self, fields: Mapping[Any, object], depth: int, visited: Iterator[int]
    ) -> dict[str, object]:
        named = ((shown(name), value) for name, value in islice(fields.items(), _MOST_VALUES))
        return {
            without_surrogates(self.clean(name)): HIDDEN
            if _IS_NAME.fullmatch(name)
            else self._within(value, depth + 1, visited)
            for name, value in named
        }

    def _cleaned(self, text: str) -> str:
        if "://" in text:
            text = _IN_ANY_URL.sub(rf"\1:{HIDDEN}@", _IN_POSTGRES_URL.sub(_without_password, text))
        text = _NAMED.sub(rf"\1\2{HIDDEN}", text)
        return text if self._known is None else self._known.sub(HIDDEN, text)


def secrets_of(dsn: str) -> Iterator[str]:
    """The passwords in a DSN, and the pieces of a password that was not percent-encoded: errors may
    quote them.
    """
    _, _, rest = dsn.partition("://")
    user, _, password = rest.rpartition("@")[0].partition(":")
    names = {unquote(user), "postgres", rest.rpartition("/")[2].partition("?")[0]}
    candidates = [password, *(part for part in _PARTS.split(password) if len(part) > SHORTEST)]
    candidates += [match[3].strip("'\"") for match in _NAMED.finditer(dsn)]
    # Public names are no secrets.
    yield from (each for each in candidates if each and unquote(each) not in names)


def header_values(text: str) -> Iterator[str]:
    """Words as long as a key in `name=value,name=value`, also with a colon: they may be secret."""
    for pair in text.split(","):
        value = _PAIRS.split(pair, maxsplit=1)[-1]
        yield from (
            word for word in {*value.split(), *unquote(value).split()} if len(word) >= _SHORTEST_KEY
        )


def shown(value: object, how: Callable[[object], str] = str) -> str:
    """The value as text, even if its own method fails."""
    try:
        return how(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _without_password(url: re.Match[str]) -> str:
    """Hide up to the last @: a password may contain one that was not encoded."""
    _, at, rest = url[2].rpartition("@")
    return f"{url[1]}{HIDDEN}@{rest}" if at else url[0]


def without_surrogates(text: str) -> str:
    """The text as JSON can hold it: without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _forms(secret: str) -> set[str]:
    plain = {secret, unquote(secret), unquote_plus(secret)}
    encoded = {encode(each) for each in plain for encode in (quote, quote_plus)} | {
        quote(each, safe="") for each in plain
    }
    quoted = {repr(each)[1:-1] for each in plain} | {json.dumps(each)[1:-1] for each in plain}
    return plain | encoded | quoted | {json.dumps(each, ensure_ascii=False)[1:-1] for each in plain}


def _bounded(form: str) -> str:
    """A pattern that does not match in the middle of a longer word."""
    before = r"(?<![A-Za-z0-9])" if form[0].isalnum() else ""
    after = r"(?![A-Za-z0-9])" if form[-1].isalnum() else ""
    return f"{before}{re.escape(form)}{after}"
