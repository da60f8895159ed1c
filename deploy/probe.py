#!/opt/hybrid-runner/bin/python -IS
"""Asks the worker in this container how it is.

`probe healthy`: whether /health says that it is well. `probe alive`: no only if a restart would
help. When the database is lost a worker is not healthy but alive: a restart would not bring the
database back, and would end the jobs that run.
Exit codes: 0 yes, 1 no, 2 a wrong question or port.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import Any

MENDED_BY_A_RESTART = {"loops"}
"""Checks of /health that only a restart can mend."""

QUESTIONS = {"healthy", "alive"}


class WrongUse(Exception):
    """A wrong question or port; the message says what to do."""


def question_of(arguments: list[str]) -> str:
    """The question in the arguments."""
    if len(arguments) != 1 or arguments[0] not in QUESTIONS:
        raise WrongUse("usage: probe healthy | probe alive")
    return arguments[0]


def port_of(given: str) -> int:
    """The port of the worker's pages."""
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
    """Why this process or one of its children needs a restart; empty if none does."""
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
    """The argument of sys.exit: a reason makes the exit code 1."""
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
