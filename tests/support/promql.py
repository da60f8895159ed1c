"""Which metrics and labels an expression of Prometheus names, held against the declared ones."""

from __future__ import annotations

import re

from hybrid_runner.telemetry.metrics.instrument import Kind
from hybrid_runner.telemetry.metrics.instruments import NAMED

FOREIGN = {"up": {"job"}, "ALERTS": {"alertname", "alertstate"}}
"""What Prometheus itself adds, and the labels that we use of it."""
PLACES = {"instance", "job"}
"""Labels that Prometheus gives to everything it scrapes."""
_AGGREGATIONS = {"sum", "min", "max", "count", "by", "on"}
_FUNCTIONS = {"rate", "increase", "max_over_time", "histogram_quantile", "absent", "vector"}
_WORDS = _AGGREGATIONS | _FUNCTIONS | {"and", "or", "unless", "offset"}
_PARTS = ("_bucket", "_sum", "_count")


def mistakes(expression: str) -> list[str]:
    """Names and labels in the expression that are not declared."""
    bare = re.sub(r"\[[^\]]*\]", "", expression)
    found, known = [], set(PLACES)
    for name, matchers in re.findall(r"([A-Za-z_]\w*)\s*\{([^}]*)\}", bare):
        allowed = labels_of(name)
        known |= allowed or set()
        labels = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', matchers)
        if allowed is not None:
            found += [
                f"{name} has no label {label}" for label in labels if label not in allowed | PLACES
            ]
    bare = re.sub(r"\{[^}]*\}", "", bare)
    groups = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", bare)
    bare = re.sub(r"\b(?:by|on)\s*\([^)]*\)", "", bare)
    for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"\b\d+(?:\.\d+)?[smhd]?\b", "", bare)):
        if name in _WORDS:
            continue
        allowed = labels_of(name)
        known |= allowed or set()
        if allowed is None:
            found.append(f"{name} is not declared")
    grouped = {label.strip() for group in groups for label in group.split(",") if label.strip()}
    return found + [f"nothing here has a label {label}" for label in sorted(grouped - known)]


def labels_of(name: str) -> set[str] | None:
    """The labels of that series; None: there is no such one. A histogram is there in its parts
    alone.
    """
    if name in FOREIGN:
        return FOREIGN[name]
    if name in NAMED:
        instrument = NAMED[name]
        return None if instrument.kind is Kind.HISTOGRAM else set(instrument.labels)
    part = next((part for part in _PARTS if name.endswith(part)), "")
    instrument_of_part = NAMED.get(name.removesuffix(part)) if part else None
    if instrument_of_part is None or instrument_of_part.kind is not Kind.HISTOGRAM:
        return None
    return set(instrument_of_part.labels) | ({"le"} if part == "_bucket" else set())


def instruments_in(expression: str) -> set[str]:
    """The declared ones that it asks for."""
    names = set(re.findall(r"\bhybrid_runner_\w+", expression))
    return {
        instrument
        for instrument in NAMED
        if names & {instrument, *(instrument + part for part in _PARTS)}
    }
