"""Reading an answer by a compiled mapping: what fits becomes items, what does not a warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from hybrid_runner.model.monitors import Item
from hybrid_runner.monitors.answers.dependencies import Parsed
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.items import check_count, distinct, make_item
from hybrid_runner.monitors.answers.paths import MISSING, Getter, getter
from hybrid_runner.monitors.answers.storable import Warnings, shown

_WORDS: Final = {
    **dict.fromkeys(("true", "ok", "healthy", "up"), True),
    **dict.fromkeys(("false", "error", "unhealthy", "down", "critical"), False),
}


class _Skipped(Exception):
    """The item cannot be parsed, and this is why."""


class Place:
    """A field of items, and where it is in them."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.get: Getter = getter(path)

    def found(self, item: Any) -> Any:
        """The value; _Skipped when there is none."""
        value = self.get(item)
        if value is MISSING or value is None:
            raise _Skipped(f"{self.name}: an item has nothing at {shown(self.path)}")
        return value


class Condition:
    """Whether something is so: a value that is a boolean or one of the words, or equals another."""

    def __init__(self, place: Place, equals: Any) -> None:
        self._place = place
        self._equals = None if equals is None else text_of(equals)

    def holds(self, item: Any) -> bool:
        value = self._place.found(item)
        if self._equals is not None:
            if isinstance(value, (dict, list)):
                raise self._unfit(value, "which is compared with nothing")
            return text_of(value) == self._equals
        if isinstance(value, bool):
            return value
        said = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
        if said is None:
            raise self._unfit(value, "neither a boolean nor one of the known words")
        return said

    def _unfit(self, value: Any, why: str) -> _Skipped:
        place = self._place
        return _Skipped(f"{place.name}: an item has {shown(value)} at {shown(place.path)}, {why}")


def text_of(value: Any) -> str:
    """A value as `equals` compares it."""
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return orjson.dumps(value).decode()


class Found(NamedTuple):
    key: str | None
    """The name under which it lies in an object."""
    value: Any


class Root:
    """Where the items are."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._get = getter(path)

    def items(self, answer: Any) -> list[Found]:
        """PollFailed `parse` when there are none to be found."""
        value = self._get(answer)
        if isinstance(value, list):
            check_count(len(value))
            return [Found(None, each) for each in value]
        if isinstance(value, dict):
            check_count(len(value))
            return [Found(key, each) for key, each in value.items()]
        what = "nothing" if value is MISSING else shown(value)
        at = f"at {shown(self._path)}, where mapping.root says" if self._path else "as a whole:"
        raise PollFailed(
            "parse", f"the answer has {what} {at} that a list or an object of items is"
        )


class Reading(NamedTuple):
    """A compiled mapping."""

    root: Root
    name: Place | None
    """None: the key."""
    healthy: Condition
    skipped: Condition | None
    others: tuple[tuple[str, Getter], ...]
    """What else `make_item` is given."""

    def read(self, answer: Any) -> Parsed:
        """The items that fit. PollFailed when they are not where the mapping says."""
        warnings = Warnings()
        items = distinct(self._fitting(self.root.items(answer), warnings), warnings)
        return Parsed(items, warnings.told())

    def _fitting(self, found: list[Found], warnings: Warnings) -> Iterator[Item]:
        for each in found:
            try:
                yield self._item(each, warnings)
            except _Skipped as reason:
                warnings.add(str(reason))

    def _item(self, found: Found, warnings: Warnings) -> Item:
        item = found.value
        if not isinstance(item, dict):
            raise _Skipped(f"an item is {shown(item)}, no object")
        name = self._name(found)
        values = {key: get(item) for key, get in self.others}
        return make_item(
            name,
            healthy=self.healthy.holds(item),
            skipped=self._is_skipped(item, warnings),
            **{key: value for key, value in values.items() if value is not MISSING},
        )

    def _name(self, found: Found) -> str:
        if self.name is None:
            if found.key is None:
                raise _Skipped("name: $key needs an object, and the items are a list")
            name: Any = found.key
        else:
            name = self.name.found(found.value)
        if isinstance(name, (int, float)) and not isinstance(name, bool):
            name = text_of(name)
        if not isinstance(name, str) or not name.strip():
            raise _Skipped(f"name: an item has {shown(name)} as its name")
        return name

    def _is_skipped(self, item: Any, warnings: Warnings) -> bool:
        if self.skipped is None:
            return False
        try:
            return self.skipped.holds(item)
        except _Skipped as reason:
            if "has nothing at" not in str(reason):
                warnings.add(str(reason))
            return False
