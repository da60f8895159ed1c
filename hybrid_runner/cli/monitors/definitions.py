"""Services as JSON: lines or one array. What is wrong with one is said with its line and field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from hybrid_runner.cli.json_arguments import read_json
from hybrid_runner.cli.parsing import did_you_mean
from hybrid_runner.display import one_line
from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import ConfigurationError

LARGEST: Final = 64 * 1024 * 1024
MOST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Definition:
    """One service of a file."""

    line: int
    fields: Mapping[str, Any]
    """By the names of columns; those that were given."""

    @property
    def name(self) -> str:
        return str(self.fields["name"])


def read_definitions(text: str) -> list[Definition]:
    """All services of a file; ConfigurationError names the line and the field."""
    if len(text) > LARGEST:
        raise ConfigurationError(f"the file is larger than {LARGEST >> 20} MiB: split it")
    found: list[Definition] = []
    lines: dict[str, int] = {}
    for line, value in _values(text):
        one = Definition(line, _fields(value, line))
        if one.name in lines:
            raise _wrong(line, "name", f"{one.name[:60]!r} is on line {lines[one.name]} already")
        if len(found) == MOST:
            raise ConfigurationError(f"there are more than {MOST:,} services: split the file")
        lines[one.name] = line
        found.append(one)
    if not found:
        raise ConfigurationError("there is no service in it")
    return found


def _values(text: str) -> Iterator[tuple[int, Any]]:
    """Each value of an array, or of lines, with the line on which it begins."""
    if text.lstrip().startswith("["):
        yield from _values_of_array(text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, read_json(line, f"line {number}")
            except ValueError as error:
                raise ConfigurationError(
                    str(error).replace(" at line 1 column", " at column")
                ) from None


def _values_of_array(text: str) -> Iterator[tuple[int, Any]]:
    read_json_text(text)  # what is no JSON is said with its line
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    line, counted = 1, 0
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        line, counted = line + text.count("\n", counted, at), at
        value, at = decoder.raw_decode(text, at)
        yield line, value


def read_json_text(text: str) -> Any:
    """The value of a JSON text; ConfigurationError says what is wrong with it, and where."""
    try:
        return read_json(text, "the file")
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _fields(value: Any, line: int) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(
            f'line {line}: a service is an object, such as {{"name": …, "url": …}}'
        )
    for name in ("name", "url"):
        if name not in value:
            raise _wrong(line, name, "is missing")
    for name in value:
        if name not in FIELDS:
            raise ConfigurationError(
                f"line {line}: there is no field {name[:60]!r}{did_you_mean(name, [*FIELDS])}"
            )
    return {name: _read(name, given, line) for name, given in value.items()}


def _read(name: str, given: Any, line: int) -> Any:
    read, what = FIELDS[name]
    try:
        return read(given)
    except (ValueError, ConfigurationError):
        shown = json.dumps(given, ensure_ascii=False)
        raise _wrong(line, name, f"{one_line(shown)[:60]} is not {what}") from None


def _wrong(line: int, name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"line {line}: {name}: {what}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004  # the caller says what is wrong
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _duration(value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError  # noqa: TRY004  # as above
    return parse_duration(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**15:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004  # as above
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004  # as above
    return value


def _object_or_none(value: Any) -> dict[str, Any] | None:
    return None if value is None else _object(value)


_DURATION = 'a duration: write it like 30, "30s" or "5m"'
_OBJECT = "an object"
FIELDS: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "name": (_text, "a text"),
    "url": (_text, "a text"),
    "every": (_duration, _DURATION),
    "timeout": (_duration, _DURATION),
    "format": (_text_or_none, "dependencies, mapping or status"),
    "mapping": (_object_or_none, _OBJECT),
    "expect": (_object_or_none, _OBJECT),
    "headers": (_object_or_none, _OBJECT),
    "follow": (_whole, "a whole number"),
    "fail_after": (_whole, "a whole number"),
    "recover_after": (_whole, "a whole number"),
    "depends_on": (_text_or_none, "the name of a service"),
    "labels": (_object, _OBJECT),
    "active": (_flag, "true or false"),
}
"""How each field is read, and what it must be; Postgres has the rest of the rules."""
