"""Where tools/fetch/telemetry puts what it compiles from tools/go."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.support.outside import cache

SOURCES = Path(__file__).parents[2] / "tools" / "go"


def folder() -> Path:
    """Its name is made of what it was compiled from, as in the script."""
    text = b"".join(
        (SOURCES / name).read_bytes() for name in ("go.mod", "go.sum", "otelcol/main.go")
    )
    return cache() / "telemetry" / hashlib.sha256(text).hexdigest()[:12]
