"""What can be said of a payload's or result's type before there is a value: whether its JSON reads
back, by which names, and what has to be looked at in each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from pydantic import TypeAdapter

Schema = Mapping[str, Any]
"""A node of a pydantic-core schema."""


@dataclass(frozen=True)
class TypeFeatures:
    """Of all types within one annotation, as far down as it goes."""

    trouble: str | None
    """Why no value could make the way: one line that names the field and says what to do."""
    names: Literal["alias", "field"]
    """By which names its JSON reads back: aliases, as its JSON schema says, or names of fields."""
    holds_any: bool
    """Parts may be of any type: they arrive as what JSON makes of them."""
    is_json: bool
    """A list or an object of anything: what untyped handlers take."""
    is_plain: bool
    """What reads back is what was written, but for a null that may stand for NaN."""
    classes: tuple[type, ...]
    """Classes whose instances are written by their own fields, without those of a subclass."""


def features_of(adapter: TypeAdapter[Any]) -> TypeFeatures:
    """What the core schema of an annotation says."""
    schema: Any = adapter.core_schema
    nodes = list(_nodes(schema, ""))
    return TypeFeatures(
        next((f"{where}: {why}" if where else why for where, why in _troubles(nodes)), None),
        "alias" if all(_reads_by_alias(node, nodes) for _, node in nodes) else "field",
        any(_is_any(node) for _, node in nodes),
        schema["type"] in ("list", "dict")
        and _is_any(schema)
        and schema.get("keys_schema", _STR)["type"] == "str",
        all(_is_plain(node) for _, node in nodes),
        tuple({node["cls"] for _, node in nodes if node["type"] in ("model", "dataclass")}),
    )


_FIELDS = ("model-field", "dataclass-field", "typed-dict-field", "named-tuple-field")
_ANY, _STR = {"type": "any"}, {"type": "str"}
_NO_NODES = frozenset({"metadata", "config", "serialization", "expected", "members", "default"})


def _nodes(value: Any, where: str) -> Iterator[tuple[str, Schema]]:
    """All nodes, each with the path of its field; what a user's serializer writes is left out."""
    if isinstance(value, Mapping):
        kind = value.get("type")
        if isinstance(kind, str):
            yield where, value
            if kind not in _FIELDS and _is_written_by_the_user(value):
                return
        for name, inner in value.items():
            if name not in _NO_NODES:
                named = isinstance(inner, Mapping) and inner.get("type") in _FIELDS
                yield from _nodes(inner, _below(where, name) if named else where)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for inner in value:
            field = isinstance(inner, Mapping) and inner.get("type") in _FIELDS
            yield from _nodes(inner, _below(where, inner["name"]) if field else where)


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _is_written_by_the_user(node: Schema) -> bool:
    function = node.get("serialization", {}).get("function")
    return function is not None and not _module_of(function).startswith("pydantic.")


def _module_of(function: object) -> str:
    """Empty for what has none, as `timedelta.total_seconds`."""
    return str(getattr(function, "__module__", ""))


def _troubles(nodes: Sequence[tuple[str, Schema]]) -> Iterator[tuple[str, str]]:
    for where, node in nodes:
        if _is_secret(node):
            why = (
                "a secret is written as asterisks: use str, which whoever may read jobs can read,"
                " or a @field_serializer that writes what may be stored"
            )
            yield where, why
        elif node["type"] == "callable":
            yield where, "a function cannot be written as JSON: use its name"
        elif node["type"] in _FIELDS and _is_required(node):
            if node.get("serialization_exclude"):
                why = (
                    "it is required and excluded from JSON: give it a default, or take"
                    " exclude=True away"
                )
                yield where, why
            elif node.get("init_only"):
                yield where, "an InitVar is not written: give it a default, or make it a field"


def _is_secret(node: Schema) -> bool:
    function = node.get("serialization", {}).get("function")
    return function is not None and (
        _module_of(function) == "pydantic.types" and "secret" in function.__name__
    )


def _is_required(field: Schema) -> bool:
    return bool(field.get("required", True)) and field["schema"]["type"] != "default"


def _reads_by_alias(node: Schema, nodes: Sequence[tuple[str, Schema]]) -> bool:
    """Whether a field is read by the name under which its alias has it written."""
    if node["type"] in ("model-fields", "dataclass-args", "typed-dict"):
        fields = node["fields"]
        named = fields.items() if isinstance(fields, Mapping) else ((f["name"], f) for f in fields)
        by_name = any(
            other["config"].get("populate_by_name") or other["config"].get("validate_by_name")
            for _, other in nodes
            if other.get("schema") is node and "config" in other
        )
        return all(_has_one_alias(name, field, by_name=by_name) for name, field in named)
    return True


def _has_one_alias(name: str, field: Schema, *, by_name: bool) -> bool:
    written = field.get("serialization_alias", name)
    read = field.get("validation_alias", name)
    choices = [read] if isinstance(read, str) else _top_level(read)
    return written in choices or (by_name and written == name)


def _top_level(aliases: Sequence[Any]) -> list[Any]:
    """The names among AliasChoices; a path into other fields is none."""
    if aliases and isinstance(aliases[0], str):  # a single path
        return list(aliases) if len(aliases) == 1 else []
    return [path[0] for path in aliases if len(path) == 1]


def _is_any(node: Schema) -> bool:
    match node["type"]:
        case "any":
            return True
        case "list" | "set" | "frozenset" | "generator":
            return bool(node.get("items_schema", _ANY)["type"] == "any")
        case "dict":
            return bool(node.get("values_schema", _ANY)["type"] == "any")
        case "model":
            return bool(node.get("config", {}).get("extra_fields_behavior") == "allow")
        case "typed-dict":
            return bool(node.get("extra_behavior") == "allow")
        case _:
            return False


_ANY_NODE = {"type", "ref", "metadata"}
_PLAIN_KEYS: dict[str, set[str]] = {
    "none": set(),
    "bool": set(),
    "int": {"gt", "ge", "lt", "le", "multiple_of", "strict"},
    "str": {"min_length", "max_length", "pattern", "strict"},
    "float": {"gt", "ge", "lt", "le", "multiple_of", "allow_inf_nan", "strict"},
    "date": set(),
    "uuid": set(),
    "enum": {"cls", "members", "sub_type", "missing"},
    "literal": {"expected"},
    "nullable": {"schema"},
    "default": {"schema", "default", "default_factory", "default_factory_takes_data"},
    "list": {"items_schema"},
    "dict": {"keys_schema", "values_schema"},
    "model": {"schema", "cls", "config", "custom_init", "root_model"},
    "model-fields": {"fields", "computed_fields", "model_name"},
    "model-field": {"schema", "validation_alias", "serialization_alias"},
    "dataclass": {"schema", "cls", "config", "fields", "frozen", "post_init", "slots"},
    "dataclass-args": {"fields", "computed_fields", "dataclass_name", "collect_init_only"},
    "dataclass-field": {
        "schema",
        "name",
        "init",
        "kw_only",
        "validation_alias",
        "serialization_alias",
    },
    "typed-dict": {"fields", "computed_fields", "cls", "config", "extra_behavior"},
    "typed-dict-field": {"schema", "required", "validation_alias", "serialization_alias"},
    "definitions": {"schema", "definitions"},
    "definition-ref": {"schema_ref"},
}
_PLAIN_CONFIG = {"title", "frozen", "extra_fields_behavior", "populate_by_name"}


def _is_plain(node: Schema) -> bool:
    """Whether nothing is known here, and nothing unknown, that writing may change or reading may
    refuse.
    """
    known = _PLAIN_KEYS.get(node["type"])
    if known is None or not node.keys() <= known | _ANY_NODE or _is_any(node):
        return False
    if not node.get("config", {}).keys() <= _PLAIN_CONFIG:
        return False
    match node["type"]:
        case "enum":
            return all(_is_plain_value(member) for member in node["members"])
        case "literal":
            return all(_is_plain_value(value) for value in node["expected"])
        case "dict":
            return bool(node.get("keys_schema", {}).get("type") == "str")
        case "model":
            return not node.get("custom_init") and not node.get("root_model")
        case "dataclass":
            return not node.get("post_init")
        case "dataclass-args":
            return not node.get("collect_init_only")
        case "dataclass-field":
            return bool(node.get("init", True))
        case _:
            return True


def _is_plain_value(value: object) -> bool:
    return type(value.value if isinstance(value, Enum) else value) is str
