"""Whether an answer is as expected: which part is not so, and what was found instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, assert_never

from hybrid_runner.monitors.answers.expect import Branch, Comparison, Leaf, Node
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.items import read_json
from hybrid_runner.monitors.answers.paths import MISSING
from hybrid_runner.monitors.answers.reading import text_of
from hybrid_runner.monitors.answers.storable import shown

_DAY: Final = 24 * 60 * 60


@dataclass(slots=True)
class Answer:
    """What a service answered."""

    status: int
    headers: Mapping[str, str]
    """Their names in any case."""
    body: bytes
    latency_ms: int
    certificate_ends_at: datetime | None
    unread: PollFailed | None = None
    """Why the body could not be read; it matters only to those who want it."""
    _json: Any = MISSING

    def text(self) -> str:
        """PollFailed when the body could not be read."""
        if self.unread is not None:
            raise self.unread
        return self.body.decode("utf-8", "replace")

    def read_anew(self) -> None:
        """Somebody has changed what was read."""
        self._json = MISSING

    def json(self) -> Any:
        """PollFailed `parse` when it is none; read once."""
        if self.unread is not None:
            raise self.unread
        if self._json is MISSING:
            try:
                self._json = read_json(self.body)
            except PollFailed as error:
                self._json = error
        if isinstance(self._json, PollFailed):
            raise self._json
        return self._json


def check_expected(node: Node, answer: Answer, now: datetime) -> None:
    """PollFailed `expect` that names the part and what was found."""
    failed = _unmet(node, answer, now)
    if failed is not None:
        raise PollFailed("expect", failed)


def _unmet(node: Node, answer: Answer, now: datetime) -> str | None:
    """None: it is so."""
    if isinstance(node, Leaf):
        return _unmet_leaf(node, answer, now)
    match node.join:
        case "and":
            found = (_unmet(part, answer, now) for part in node.parts)
            return next((each for each in found if each is not None), None)
        case "or":
            each = [_unmet(part, answer, now) for part in node.parts]
            return None if None in each else "; and ".join(filter(None, each))
        case "not":
            (part,) = node.parts
            if _unmet(part, answer, now) is not None:
                return None
            return f"not wanted, and so it is: {_named(part)}"
    assert_never(node.join)


def _named(node: Node) -> str:
    if isinstance(node, Branch):
        return f" {node.join} ".join(map(_named, node.parts))
    return f"{node.where} {node.comparison} {shown(node.wanted)}"


def _unmet_leaf(leaf: Leaf, answer: Answer, now: datetime) -> str | None:
    found = _found(leaf, answer, now)
    if leaf.comparison == "exists":
        is_met = (found is not MISSING) == leaf.wanted
    else:
        is_met = found is not MISSING and _COMPARED[leaf.comparison](found, leaf.wanted)
    if is_met:
        return None
    at = f" at {shown(leaf.at)}" if leaf.at else ""
    got = "nothing" if found is MISSING else shown(found)
    return f"{leaf.where}: found {got}{at}, wanted {leaf.comparison} {shown(leaf.wanted)}"


def _found(leaf: Leaf, answer: Answer, now: datetime) -> Any:
    match leaf.kind:
        case "status":
            return answer.status
        case "latency":
            return answer.latency_ms
        case "certificate":
            ends = answer.certificate_ends_at
            return MISSING if ends is None else int((ends - now).total_seconds() // _DAY)
        case "header":
            return answer.headers.get(leaf.at or "", MISSING)
        case "body":
            return _in_body(leaf, answer)
    assert_never(leaf.kind)


def _in_body(leaf: Leaf, answer: Answer) -> Any:
    if leaf.get is None:
        return answer.text()
    try:
        return leaf.get(answer.json())
    except PollFailed:
        if answer.unread is not None:
            raise
        return MISSING  # it is no JSON, so nothing is at the path


def _equals(found: Any, wanted: Any) -> bool:
    return not isinstance(found, (dict, list)) and text_of(found) == text_of(wanted)


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, list):
        return any(_equals(each, wanted) for each in found)
    return isinstance(found, str) and wanted in found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_COMPARED: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    "equals": _equals,
    "contains": _contains,
    "above": lambda found, wanted: _is_number(found) and found > wanted,
    "below": lambda found, wanted: _is_number(found) and found < wanted,
}
