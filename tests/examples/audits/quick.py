"""The example's workers as processes, with a lease and heartbeats that a test can wait for.
`AUDIT_SECONDS` is how long each look at a site takes.
"""

from __future__ import annotations

import os

from examples.audits.app import app
from examples.audits.site import sites

__all__ = ["app"]

app.use(lease="2s", heartbeat="300ms", row_heartbeat="1s", grace="10ms")
sites.look = float(os.environ.get("AUDIT_SECONDS", "0.01"))
