"""Answers of other shapes: a mapping says where in them the dependencies and their fields are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, Final, cast

import orjson
from pydantic import Discriminator, Field, Tag

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.definitions import (
    TAGS,
    Definition,
    Literal,
    NamePath,
    OptionalPath,
    Path,
    RootPath,
    check_size,
    checked,
)
from hybrid_runner.monitors.answers.paths import getter
from hybrid_runner.monitors.answers.reading import Condition, Place, Reading, Root

_CAMEL: Final = {
    "check_details": "checkDetails",
    "error_message": "errorMessage",
    "last_checked": "lastChecked",
}


@dataclass(frozen=True, slots=True)
class Equals:
    """True where the field has that value: compared as text, in upper or lower case."""

    field: str
    equals: str | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Where an answer says what: `Mapping(root="components", name="$key",
    healthy=Equals("status", "UP"))`.

    Paths are names with dots between (`checks.state`). `root` leads to a list of items, or to an
    object of which each name has an item; `$key` is that name. Without `root` it is the answer
    itself.
    """

    name: str
    healthy: str | Equals
    root: str = ""
    type: str | None = None
    description: str | None = None
    impact: str | None = None
    state: str | None = None
    code: str | None = None
    latency: str | None = None
    skipped: str | Equals | None = None
    contact: str | None = None
    check_details: str | None = None
    error: str | None = None
    error_message: str | None = None
    last_checked: str | None = None

    def __post_init__(self) -> None:
        compile_mapping(self.stored())

    def stored(self) -> dict[str, Any]:
        """As column `mapping` of hybrid_monitors.services has it."""
        found: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Equals):
                value = {"field": value.field, "equals": value.equals}
            if value is not None and each.name != "root":
                found[_CAMEL.get(each.name, each.name)] = value
        return {"root": self.root, "fields": found}


class StoredEquals(Definition):
    field: Path
    equals: Literal


def _form(value: Any) -> str | None:
    if isinstance(value, str):
        return TAGS[0]
    return TAGS[1] if isinstance(value, dict) else None


_FORM: Final = Discriminator(
    _form,
    custom_error_type="refused",
    custom_error_message=' must be a path or {"field": path, "equals": value}',
)
_PathForm = Annotated[Path, Tag(TAGS[0])]
_EqualsForm = Annotated[StoredEquals, Tag(TAGS[1])]
StoredTest = Annotated[_PathForm | _EqualsForm, _FORM]


class StoredFields(Definition):
    name: NamePath
    healthy: StoredTest
    type: OptionalPath = None
    description: OptionalPath = None
    impact: OptionalPath = None
    state: OptionalPath = None
    code: OptionalPath = None
    latency: OptionalPath = None
    skipped: StoredTest = Field(default=cast("Any", None))
    contact: OptionalPath = None
    check_details: OptionalPath = Field(None, alias="checkDetails")
    error: OptionalPath = None
    error_message: OptionalPath = Field(None, alias="errorMessage")
    last_checked: OptionalPath = Field(None, alias="lastChecked")


class StoredMapping(Definition):
    root: RootPath = ""
    fields: StoredFields


def compile_mapping(stored: Any) -> Reading:
    """ConfigurationError in one line when it is not as it must be."""
    try:
        text = orjson.dumps(stored)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"mapping cannot be written as JSON: {error}") from None
    return _compiled(text)


@lru_cache(maxsize=1024)
def _compiled(text: bytes) -> Reading:
    stored = orjson.loads(text)
    check_size(stored, "mapping")
    mapping = checked(StoredMapping, stored, "mapping")
    given = mapping.fields
    return Reading(
        root=Root(mapping.root),
        name=None if given.name == "$key" else Place("name", given.name),
        healthy=_test("healthy", given.healthy),
        skipped=_test("skipped", given.skipped) if "skipped" in given.model_fields_set else None,
        others=tuple(
            (name, getter(at))
            for name, at in given
            if at is not None and name not in {"name", "healthy", "skipped"}
        ),
    )


def _test(name: str, stored: str | StoredEquals) -> Condition:
    if isinstance(stored, str):
        return Condition(Place(name, stored), None)
    return Condition(Place(name, stored.field), stored.equals)
