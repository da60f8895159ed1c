"""The standard shape: a list of dependencies, each with its name and whether it is healthy."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from hybrid_runner.model.monitors import Item, Same
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.items import check_count, distinct, latency_of, make_item
from hybrid_runner.monitors.answers.storable import Warnings, shown
from hybrid_runner.policy.monitored_dependencies import digest_of


class Parsed(NamedTuple):
    items: tuple[Item, ...]
    warnings: tuple[str, ...] = ()
    same: Same | None = None
    """Instead of items: they are those of the last answer."""


class LastAnswer(NamedTuple):
    """The last answer of a service: most say the same, and need not be read once more."""

    said: bytes
    """A digest of it, without latencies and times."""
    names: tuple[str, ...]
    digest: str
    """Of its items."""

    def read(self, answer: Any) -> Same | None:
        """None: it says something else, or cannot be compared. Either way it is spoilt."""
        stripped = _stripped(answer)
        if stripped is None or stripped[0] != self.said:
            return None
        return Same(self.names, stripped[1])


def remember(answer: Any, parsed: Parsed) -> LastAnswer | None:
    """It, to recognise the next one by; the answer is spoilt. None: it is not one of many alike."""
    stripped = _stripped(answer)
    if stripped is None or parsed.warnings or len(parsed.items) != len(stripped[1]):
        return None
    names = tuple(item.name for item in parsed.items)
    return LastAnswer(stripped[0], names, digest_of(parsed.items))


def _stripped(answer: Any) -> tuple[bytes, list[int]] | None:
    """A digest of what is left without latencies and times; and the latencies."""
    listed = answer.get("dependencies", answer) if type(answer) is dict else answer
    if type(listed) is not list:
        return None
    latencies = []
    for item in listed:
        if type(item) is not dict:
            return None
        health = item.get("health")
        latency = None
        if type(health) is dict and "latency" in health:
            latency = health.pop("latency")
        elif "latencyMs" in item:
            latency = item.pop("latencyMs")
        item.pop("lastChecked", None)
        latencies.append(latency_of(latency))
    try:
        return blake2b(orjson.dumps(listed), digest_size=16).digest(), latencies
    except (TypeError, ValueError):  # nested too deeply
        return None


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
