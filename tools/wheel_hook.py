"""Build hook: a wheel carries sql/ inside the package; an editable install reads the checkout, so
it must have no copy.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SqlInWheel(BuildHookInterface[Any]):
    """Adds sql/ to wheels that are not editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"]["sql"] = "hybrid_runner/sql"
