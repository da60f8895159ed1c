#!/opt/hybrid-runner/bin/python -IS
"""Whether the worker in this container is well: `probe healthy`, as /health says; `probe alive`,
unless only a restart helps.

Exit code 0 is yes, 1 is no, 2 is a question or a port that cannot be.
A lost database makes a worker ill, but no restart brings that back, and it would end the jobs that
run.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import Any

MENDED_BY_A_RESTART = {"loops"}
"""Checks of /health that say so."""


QUESTIONS = {"healthy", "alive"}


class WrongUse(Exception):
    """Nobody can answer that: a line that says what to do."""


def question_of(arguments: list[str]) -> str:
    """The one that is asked."""
    if len(arguments) != 1 or arguments[0] not in QUESTIONS:
        raise WrongUse("usage: probe healthy | probe alive")
    return arguments[0]


def port_of(given: str) -> int:
    """Where the worker's pages are."""
    port = int(given) if given.isdecimal() else -1
    if port == 0:
        raise WrongUse(
            "HYBRID_RUNNER_HTTP_PORT is 0, so this worker has no /health: give it a port, or leave"
            " the probe out"
        )
    if not 0 < port < 1 << 16:
        raise WrongUse(f"HYBRID_RUNNER_HTTP_PORT must be a port, 1 to 65535, and is {given!r}")
    return port


def health(port: int) -> tuple[int, dict[str, Any]]:
    """Status and body of /health."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    connection.request("GET", "/health")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def stuck(body: dict[str, Any]) -> list[str]:
    """What only a restart brings back, in this process or in its children."""
    reasons = [
        check["reason"]
        for check in body["checks"]
        if check["name"] in MENDED_BY_A_RESTART and not check["ok"]
    ]
    if body["phase"] == "stalled":
        reasons.append("a handler holds up the event loop")
    return reasons + [
        reason for child in body.get("processes", ()) if child["checks"] for reason in stuck(child)
    ]


def complaint(question: str, port: int) -> str | None:
    """Why the answer is no, or None."""
    try:
        status, body = health(port)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no answer from /health: {error}"
    if question == "alive":
        return "; ".join(stuck(body)) or None
    return (
        None
        if status == http.HTTPStatus.OK
        else "; ".join(check["reason"] for check in body["checks"] if not check["ok"])
    )


def main(arguments: list[str]) -> str | int | None:
    """What sys.exit makes an exit code of: a reason is 1."""
    try:
        question, port = (
            question_of(arguments),
            port_of(os.environ.get("HYBRID_RUNNER_HTTP_PORT") or "8080"),
        )
    except WrongUse as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return complaint(question, port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
