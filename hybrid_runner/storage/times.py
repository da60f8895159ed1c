"""Times as Postgres has them: its infinity comes from the driver without a time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def with_zone(value: Any) -> Any:
    """A time that can be compared with others; whatever else it is stays."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
