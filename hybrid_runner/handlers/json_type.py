"""The type of payloads or results of one kind: writes values as JSON that reads back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from hybrid_runner.handlers.difference import difference
from hybrid_runner.handlers.type_features import features_of
from hybrid_runner.jsontext import (
    NotStorable,
    check,
    encode,
    find_no_number,
    find_no_text,
    no_number,
)

T = TypeVar("T", str, list[str])


class Written(NamedTuple, Generic[T]):
    """One value as JSON, or several."""

    text: T
    changed: str | None
    """What of it would not arrive as it is; None when it reads back."""


class JsonType:
    """The annotation of a handler's payload or result."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self.adapter = adapter
        self.features = features_of(adapter)
        self._by_alias = self.features.names == "alias"
        # Whoever inserts by SQL writes aliases, as the JSON schema says.
        self.read: Callable[[str | bytes], Any] = (
            adapter.validator.validate_json
            if self._by_alias
            else partial(adapter.validator.validate_json, by_alias=True, by_name=True)
        )
        """The value that JSON stands for; ValidationError when it does not fit."""

    def schema(self) -> str | None:
        """The JSON schema of what can be read, as JSON text; None of a type that has none."""
        try:
            return encode(self.adapter.json_schema(by_alias=True), "the schema")
        except (PydanticUserError, NotStorable):
            return None

    def fit(self, value: Any) -> Any:
        """The value as this type; ValidationError when it does not fit."""
        # The methods of TypeAdapter do the same and take several times as long.
        return self.adapter.validator.validate_python(value)

    def dump(self, value: Any) -> bytes:
        """A value as JSON, unchecked: to compare it with another one. ValueError, TypeError or
        RecursionError when it cannot be written.
        """
        return self.adapter.serializer.to_json(
            value, by_alias=self._by_alias, round_trip=True, warnings=False
        )

    def write(self, fitted: Any, what: str) -> Written[str]:
        """A value that fits, as JSON; NotStorable when it cannot be written."""
        dump = self.adapter.serializer.to_json
        try:
            text = dump(fitted, by_alias=self._by_alias, round_trip=True, warnings=False)
        except (ValueError, TypeError, RecursionError) as error:
            where = find_no_text(fitted)
            place = f" ({where})" if where else ""
            raise NotStorable(f"{what}{place} cannot be written as JSON: {_line(error)}") from None
        changed = self._changed(fitted, text)
        if (changed is not None and b"null" in text) or not _is_json(text):
            self._refuse_nan(fitted, what)
        return Written(check(text, what), changed)

    def write_all(self, values: Iterable[Any], what: str) -> Written[list[str]]:
        """Each of the values, once it fits; quicker where the type says that nothing can change on
        the way.
        """
        validate = self.adapter.validator.validate_python
        if self.features.is_json:
            return Written([encode(validate(value), what) for value in values], None)
        if not self._is_quick():
            return self._write_with_care(map(validate, values), what)
        dump, read, by_alias = self.adapter.serializer.to_json, self.read, self._by_alias
        texts = []
        for value in values:
            fitted = validate(value)
            try:
                text = dump(fitted, by_alias=by_alias, round_trip=True, warnings=False)
                read(text)  # an instance may have been changed since it was validated
            except (ValueError, TypeError, RecursionError):
                text = b"null"
            if b"null" in text:  # it may stand for NaN
                written = self.write(fitted, what)
                if written.changed is not None:
                    return Written([written.text], written.changed)
                texts.append(written.text)
            else:
                texts.append(check(text, what))
        return Written(texts, None)

    def _write_with_care(self, fitted: Iterable[Any], what: str) -> Written[list[str]]:
        texts = []
        for value in fitted:
            text, changed = self.write(value, what)
            if changed is not None:
                return Written([text], changed)
            texts.append(text)
        return Written(texts, None)

    def _is_quick(self) -> bool:
        features = self.features
        # An instance of a subclass would be written without what the subclass adds.
        return features.is_plain and not any(cls.__subclasses__() for cls in features.classes)

    def _changed(self, fitted: Any, text: bytes) -> str | None:
        try:
            got = self.read(text)
        except ValidationError as error:
            return explain(error, "")
        except Exception as error:  # a validator of the user's may raise anything
            return f"{type(error).__name__}: {error}"
        return difference(fitted, got, holds_any=self.features.holds_any)

    def _refuse_nan(self, fitted: Any, what: str) -> None:
        dump = self.adapter.dump_python
        where = find_no_number(dump(fitted, mode="json", round_trip=True, warnings=False))
        if where is not None:
            raise no_number(what, where)


def _is_json(text: bytes) -> bool:
    """Whether it is also without the NaN and infinity that pydantic can be told to write."""
    if b"NaN" not in text and b"Infinity" not in text:
        return True
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def explain(error: ValidationError, whole: str = "payload") -> str:
    """The errors in one line; `whole` is the name of the value itself, empty for none."""
    errors = [
        (".".join(map(str, e["loc"])) or whole, e["msg"])
        for e in error.errors(include_input=False)[:5]
    ]
    parts = [f"{where}: {why}" if where else why for where, why in errors]
    more = error.error_count() - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
