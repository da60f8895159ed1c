"""What the type of a payload says of its outermost JSON: the members of an object, or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_runner.handlers.json_type import JsonType

_FIELDS = ("model-fields", "dataclass-args", "typed-dict")
_NO_LISTS = (*_FIELDS, "dict", "str", "int", "float", "bool", "date", "datetime", "uuid", "enum")


def members_of(payload: JsonType) -> Sequence[str] | None:
    """The names of an object's members, or of a list's objects, as they are stored; None where the
    type leaves them open.
    """
    node, definitions = _start(payload)
    outermost = _outermost(node, definitions)
    if outermost.get("type") == "list":
        outermost = _outermost(outermost.get("items_schema", {}), definitions)
    if outermost.get("type") not in _FIELDS or outermost.get("extra_behavior") == "allow":
        return None
    fields = outermost["fields"]
    named = fields.items() if isinstance(fields, Mapping) else ((f["name"], f) for f in fields)
    if payload.features.names == "field":
        return [name for name, _ in named]
    return [field.get("serialization_alias", name) for name, field in named]


def takes_no_list(payload: JsonType) -> bool:
    """Whether a list would never fit."""
    return _outermost(*_start(payload)).get("type") in _NO_LISTS


def _start(payload: JsonType) -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]:
    schema: Mapping[str, Any] = payload.adapter.core_schema
    if schema["type"] != "definitions":
        return schema, {}
    return schema["schema"], {node["ref"]: node for node in schema["definitions"]}


def _outermost(
    node: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """What is inside of names and of the classes that hold fields; empty where it is open."""
    for _ in range(10):
        match node.get("type"):
            case "definition-ref":
                node = definitions.get(node["schema_ref"], {})
            case "model" | "dataclass":
                if node.get("config", {}).get("extra_fields_behavior") == "allow":
                    return {}
                if "serialization" in node:  # it is written by the user
                    return {}
                node = node["schema"]
            case _:
                return {} if "serialization" in node else node
    return {}
