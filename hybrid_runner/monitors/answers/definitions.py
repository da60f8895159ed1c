"""What people store about a service, checked: one line says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from hybrid_runner.errors import ConfigurationError

LARGEST: Final = 8192
"""Bytes of JSON of a mapping, an expectation, headers."""
_LONGEST: Final = 200
_GREATEST: Final = 1e15
TAGS: Final = ("<path>", "<equals>")
"""pydantic's names for the two forms of a test; they are no part of a place."""
_Model = TypeVar("_Model", bound="Definition")


def refused(says: str) -> PydanticCustomError:
    """What is wrong with a value; the place is put before it."""
    return PydanticCustomError("refused", "{says}", {"says": says})


class Definition(BaseModel):
    """An object in which nothing may be that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _only_known(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise refused(" must be an object")
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in sorted(value):
            if key not in known:
                raise refused(f".{key[:100]} is unknown: use one of {', '.join(known)}")
        return value


def checked(model: type[_Model], value: Any, where: str) -> _Model:
    """The value as that model; ConfigurationError with one line that names the place."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join((where, *(str(part) for part in first["loc"] if part not in TAGS)))
        says = " is missing" if first["type"] == "missing" else first["msg"]
        raise ConfigurationError(f"{place}{says}") from None


def check_size(value: Any, where: str) -> None:
    """Measured as Postgres writes jsonb as text."""
    try:
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError):
        raise ConfigurationError(f"{where} cannot be written as JSON") from None
    if size > LARGEST:
        raise ConfigurationError(f"{where} has more than {LARGEST} bytes of JSON: make it shorter")


def _path(value: Any, *, key: bool = False, empty: bool = False) -> str:
    if not isinstance(value, str):
        raise refused(" must be a path, such as status or checks.state")
    if not value:
        if empty:
            return value
        raise refused(" is empty: write a path, such as status or checks.state")
    if len(value) > _LONGEST:
        raise refused(f" has more than {_LONGEST} characters: make it shorter")
    if value == "$key":
        if key:
            return value
        raise refused(" is $key, which only the name can be: write a path")
    if value.startswith("$"):
        raise refused(" begins with $: write names with one dot between, such as checks.state")
    if "" in value.split("."):
        raise refused(" has an empty part: write names with one dot between, such as checks.state")
    return value


def _literal(value: Any) -> Any:
    if not isinstance(value, (str, int, float)):
        raise refused(" must be a text, a number or a boolean")
    if not isinstance(value, str):
        _check_range(value)
    if isinstance(value, str) and len(value) > _LONGEST:
        raise refused(f" has more than {_LONGEST} characters: make it shorter")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused(" must be a number")
    _check_range(value)
    return value


def _check_range(value: float) -> None:
    if not abs(value) <= _GREATEST:  # nor is it NaN
        raise refused(" must be between -1e15 and 1e15")


def _short_text(value: Any) -> Any:
    if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST:
        raise refused(f" must be a text of 1 to {_LONGEST} characters")
    return value


def _boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise refused(" must be true or false")
    return value


def _keyed(value: Any) -> str:
    return _path(value, key=True)


def _rooted(value: Any) -> str:
    return _path(value, empty=True)


def _check(check: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(check)


Path = Annotated[str, _check(_path)]
OptionalPath = Annotated[str | None, _check(_path)]
"""It may be left out, and is not null."""
NamePath = Annotated[str, _check(_keyed)]
RootPath = Annotated[str, _check(_rooted)]
Literal = Annotated[Any, _check(_literal)]
Number = Annotated[Any, _check(_number)]
ShortText = Annotated[Any, _check(_short_text)]
Boolean = Annotated[Any, _check(_boolean)]
