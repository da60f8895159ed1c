"""Takes passwords out of log lines, whoever put them there: the last line of defence, not the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, unquote, unquote_plus

HIDDEN = "***"
SHORTEST = 3
"""What is shorter would be found by chance in every line; it is still hidden where it stands as a password."""

_IN_POSTGRES_URL = re.compile(r"(\bpostgres(?:ql)?://[^\s:/@'\"]*):[^\s'\"]*@", re.IGNORECASE)
"""Up to the last @: a password may contain one that nobody encoded."""
_IN_ANY_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@'\"]*):[^\s/@'\"]+@", re.IGNORECASE)
_NAMED = re.compile(
    r"""\b(\w*password|passwd|pwd)(["']?\s*[=:]\s*)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s&,;'"]+)""", re.IGNORECASE
)
_IS_NAME = re.compile(r"\w*password|passwd|pwd", re.IGNORECASE)
_PARTS = re.compile(r"[/?#@:]")


class Redaction:
    """Knows some secrets by their value, and all passwords by where they stand."""

    def __init__(self, dsns: Iterable[str | None] = (), secrets: Iterable[str | None] = ()) -> None:
        known = {secret for dsn in dsns if dsn for secret in secrets_of(dsn)} | {secret for secret in secrets if secret}
        forms = {form for secret in known for form in _forms(secret) if len(form) >= SHORTEST}
        alternatives = "|".join(_bounded(form) for form in sorted(forms, key=len, reverse=True))
        self._known = re.compile(alternatives) if forms else None

    def clean(self, text: str) -> str:
        """The same text without passwords."""
        if "://" in text:
            text = _IN_ANY_URL.sub(rf"\1:{HIDDEN}@", _IN_POSTGRES_URL.sub(rf"\1:{HIDDEN}@", text))
        text = _NAMED.sub(rf"\1\2{HIDDEN}", text)
        return text if self._known is None else self._known.sub(HIDDEN, text)

    def within(self, value: object) -> object:
        """The same for values that become JSON: before they do, since JSON writes some characters differently."""
        match value:
            case str():
                return self.clean(value)
            case dict():
                return {str(key): HIDDEN if _IS_NAME.fullmatch(str(key)) else self.within(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.within(inner) for inner in value]
            case _:
                return value


def secrets_of(dsn: str) -> Iterator[str]:
    """The passwords in a DSN, and the pieces of one that was not percent-encoded: errors may quote them."""
    _, _, rest = dsn.partition("://")
    user, _, password = rest.rpartition("@")[0].partition(":")
    names = {unquote(user), "postgres", rest.rpartition("/")[2].partition("?")[0]}
    candidates = [password, *(part for part in _PARTS.split(password) if len(part) > SHORTEST)]
    candidates += [match[3].strip("'\"") for match in _NAMED.finditer(dsn)]
    yield from (each for each in candidates if each and unquote(each) not in names)  # a name that everybody knows is no secret


def _forms(secret: str) -> set[str]:
    plain = {secret, unquote(secret), unquote_plus(secret)}
    encoded = {encode(each) for each in plain for encode in (quote, quote_plus)} | {quote(each, safe="") for each in plain}
    return plain | encoded | {repr(each)[1:-1] for each in plain}


def _bounded(form: str) -> str:
    """Not in the middle of a longer word."""
    before = r"(?<![A-Za-z0-9])" if form[0].isalnum() else ""
    after = r"(?![A-Za-z0-9])" if form[-1].isalnum() else ""
    return f"{before}{re.escape(form)}{after}"
