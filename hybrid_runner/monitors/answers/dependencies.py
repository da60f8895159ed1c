"""The standard shape: a list of dependencies, each with its name and whether it is healthy."""

from __future__ import annotations

from typing import Any, NamedTuple

from hybrid_runner.model.monitors import Item
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.items import check_count, distinct, make_item
from hybrid_runner.monitors.answers.storable import Warnings, shown


class Parsed(NamedTuple):
    items: tuple[Item, ...]
    warnings: tuple[str, ...] = ()


def parse_dependencies(answer: Any) -> Parsed:
    """PollFailed when a single item is not as it must be: then nothing of the answer counts."""
    listed = answer.get("dependencies", answer) if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        raise PollFailed(
            "parse",
            "the answer is no list of dependencies, and has none under `dependencies`:"
            f" it is {shown(answer)}",
        )
    check_count(len(listed))
    warnings = Warnings()
    items = distinct((_item(index, each) for index, each in enumerate(listed)), warnings)
    return Parsed(items, warnings.told())


def _item(index: int, item: Any) -> Item:
    if not isinstance(item, dict):
        raise PollFailed("parse", f"item {index} is {shown(item)}, no object")
    name = item.get("name")
    if not isinstance(name, str) or not name.strip():
        raise PollFailed("parse", f"item {index}: name is {_found(item, 'name')}, no text")
    healthy = item.get("healthy")
    if not isinstance(healthy, bool):
        raise PollFailed(
            "parse",
            f"item {index} ({shown(name)}): healthy is {_found(item, 'healthy')},"
            " neither true nor false",
        )
    health = item.get("health")
    if not isinstance(health, dict):
        health = {}
    get, get_health = item.get, health.get
    # Nested or flat, or a mixture of both.
    return make_item(
        name,
        healthy=healthy,
        skipped=get_health("skipped") is True or get("skipped") is True,
        type=get("type"),
        description=get("description"),
        impact=get("impact"),
        state=get_health("state", get("state")),
        code=get_health("code", get("healthCode")),
        latency=get_health("latency", get("latencyMs")),
        contact=get("contact"),
        check_details=get("checkDetails"),
        error=get("error"),
        error_message=get("errorMessage"),
        last_checked=get("lastChecked"),
    )


def _found(item: dict[str, Any], field: str) -> str:
    return shown(item[field]) if field in item else "missing"
