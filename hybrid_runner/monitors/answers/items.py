"""One dependency of an answer, made of what was found of it, cleaned and within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import orjson

from hybrid_runner.model.monitors import Item
from hybrid_runner.monitors.answers import storable
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.storable import Warnings

MOST: Final = 500
"""Items of one answer."""
MOST_ERRORS: Final = 64 * 1024
"""Bytes of the errors of one answer, with their messages: each may be a new row of a history."""
_SHORT: Final = 60
"""Characters that are kept of the message of an error beyond."""
_STATES: Final = {"OK": 0, "WARNING": 1, "CRITICAL": 2}


def read_json(body: bytes) -> Any:
    """The answer; PollFailed `parse` when it is no JSON."""
    if not body.strip():
        raise PollFailed("parse", "the answer is empty: it should be JSON")
    try:
        return orjson.loads(body.removeprefix(b"\xef\xbb\xbf"))
    except (orjson.JSONDecodeError, RecursionError) as error:
        begins = storable.shown(body[:40].decode("utf-8", "replace"))
        raise PollFailed(
            "parse", f"the answer is no JSON: {error}; it begins with {begins}"
        ) from None


def make_item(
    name: str,
    *,
    healthy: bool,
    skipped: bool,
    type: Any = None,  # noqa: A002  the field is called so
    description: Any = None,
    impact: Any = None,
    state: Any = None,
    code: Any = None,
    latency: Any = None,
    contact: Any = None,
    check_details: Any = None,
    error: Any = None,
    error_message: Any = None,
    last_checked: Any = None,
) -> Item:
    """What is skipped counts as healthy, whatever else is said of it."""
    healthy = healthy or skipped
    return Item(
        name=storable.text(name, storable.NAME),
        healthy=healthy,
        type=storable.optional_text(type, storable.TYPE) or "other",
        description=storable.optional_text(description),
        impact=storable.optional_text(impact),
        state=_state(state, healthy=healthy),
        code=storable.whole(code, 200, -storable.INT4 - 1, storable.INT4),
        latency_ms=latency_of(latency),
        skipped=skipped,
        contact=storable.small_object(contact),
        check_details=storable.small_object(check_details),
        error=storable.small_json(error),
        error_message=storable.optional_text(error_message),
        last_checked=storable.time_of(last_checked),
    )


def latency_of(said: Any) -> int:
    """Milliseconds; 0 for what is none."""
    return storable.whole(said, 0, 0, storable.INT4)


def _state(state: Any, *, healthy: bool) -> int:
    if isinstance(state, str):
        state = _STATES.get(state) if state in _STATES else _STATES.get(state.strip().upper())
    if isinstance(state, (int, float)) and not isinstance(state, bool) and state in {0, 1, 2}:
        return int(state)
    return 0 if healthy else 2


def distinct(items: Iterable[Item], warnings: Warnings) -> tuple[Item, ...]:
    """One item for each name, where the first stood: the last one that has the name counts."""
    by_name: dict[str, Item] = {}
    for item in items:
        if item.name in by_name:
            warnings.add(f"{storable.shown(item.name)} is there more than once: the last counts")
        by_name[item.name] = item
    return tuple(_bounded(by_name.values(), warnings))


def _bounded(items: Iterable[Item], warnings: Warnings) -> Iterator[Item]:
    """The items; once their errors are too large together, of each the beginning of its message."""
    left = MOST_ERRORS
    for item in items:
        if item.error is None and item.error_message is None:
            yield item
            continue
        left -= len(orjson.dumps((item.error, item.error_message)))
        if left >= 0:
            yield item
        else:
            warnings.add(f"the errors have more than {MOST_ERRORS:,} bytes: some are shortened")
            message = storable.optional_text(item.error_message, _SHORT)
            yield replace(item, error=None, error_message=message)


def check_count(count: int) -> None:
    if count > MOST:
        raise PollFailed("parse", f"the answer has {count:,} items, the most is {MOST}")
