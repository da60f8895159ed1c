#!/opt/hybrid-runner/bin/python -IS
"""Whether the worker in this container is well: `probe healthy`, as /health says; `probe alive`, unless only a restart helps.

Exit code 0 is yes. A lost database makes a worker ill, but no restart brings that back, and it would end the jobs that run.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import Any

MENDED_BY_A_RESTART = {"loops"}
"""Checks of /health that say so."""


def health() -> tuple[int, dict[str, Any]]:
    """Status and body of /health."""
    port = int(os.environ.get("HYBRID_RUNNER_HTTP_PORT") or 8080)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    connection.request("GET", "/health")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def stuck(body: dict[str, Any]) -> list[str]:
    """What only a restart brings back, in this process or in its children."""
    reasons = [check["reason"] for check in body["checks"] if check["name"] in MENDED_BY_A_RESTART and not check["ok"]]
    if body["phase"] == "stalled":
        reasons.append("a handler holds up the event loop")
    return reasons + [reason for child in body.get("processes", ()) if child["checks"] for reason in stuck(child)]


def main(question: str) -> str | None:
    """Why the answer is no, or None."""
    try:
        status, body = health()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no answer from /health: {error}"
    if question == "alive":
        return "; ".join(stuck(body)) or None
    return None if status == http.HTTPStatus.OK else "; ".join(check["reason"] for check in body["checks"] if not check["ok"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
