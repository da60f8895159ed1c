"""deploy/probe.py against a page that says what a worker's /health says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

PROBE = Path(__file__).parents[2] / "deploy" / "probe.py"
FINE = {"name": "loops", "ok": True, "reason": "all background loops run"}
AWAY = {"name": "claiming", "ok": False, "reason": "looking for jobs failed in a row"}
ENDED = {"name": "loops", "ok": False, "reason": "ended, and only a restart brings back: poller"}


def body(*checks: dict[str, Any], phase: str = "running", **more: Any) -> dict[str, Any]:
    """What /health says."""
    return {
        "healthy": all(check["ok"] for check in checks),
        "phase": phase,
        "checks": [*checks],
        **more,
    }


@contextmanager
def serving(said: dict[str, Any]) -> Iterator[int]:
    """The port of a page that says so."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if said["healthy"] else 503)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def asked(question: str, port: int | str) -> tuple[int, str]:
    """Its exit code and what it said."""
    environment = os.environ | {"HYBRID_RUNNER_HTTP_PORT": str(port)}
    command = [sys.executable, "-IS", str(PROBE), *question.split()]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr.strip()


@pytest.mark.parametrize(
    ("said", "healthy", "alive"),
    [
        (body(FINE), True, True),
        (body(phase="starting"), True, True),
        (body(FINE, AWAY), False, True),
        (body(ENDED), False, False),
        (body(FINE, phase="stalled"), True, False),
        (body(processes=[body(FINE), body(ENDED)]) | {"healthy": False}, False, False),
        (body(processes=[body(FINE), body(AWAY)]) | {"healthy": False}, False, True),
        (body(processes=[body(FINE), body(FINE, phase="stalled")]), True, False),
    ],
)
def test_a_worker_without_postgres_is_ill_and_alive_and_one_that_only_a_restart_mends_is_not(
    said: dict[str, Any], healthy: bool, alive: bool
) -> None:
    """A11"""
    with serving(said) as port:
        assert [asked(question, port)[0] == 0 for question in ("healthy", "alive")] == [
            healthy,
            alive,
        ]


def test_it_says_why() -> None:
    with serving(body(FINE, AWAY)) as port:
        assert asked("healthy", port) == (1, AWAY["reason"])


def test_a_worker_that_does_not_answer_is_neither() -> None:
    for question in ("healthy", "alive"):
        code, said = asked(question, 9)
        assert code == 1
        assert said.startswith("no answer from /health: ")


@pytest.mark.parametrize("question", ["", "ready", "healthy alive", "--help"])
def test_another_question_is_refused_by_a_line_that_names_the_two(question: str) -> None:
    with serving(body(FINE)) as port:
        assert asked(question, port) == (2, "usage: probe healthy | probe alive")


def test_where_no_pages_are_served_it_says_so() -> None:
    for question in ("healthy", "alive"):
        assert asked(question, 0) == (
            2,
            (
                "HYBRID_RUNNER_HTTP_PORT is 0, so this worker has no /health: give it a port, or"
                " leave the probe out"
            ),
        )


@pytest.mark.parametrize("port", ["http", "-1", "65536", "80.5"])
def test_what_is_no_port_is_named(port: str) -> None:
    assert asked("healthy", port) == (
        2,
        f"HYBRID_RUNNER_HTTP_PORT must be a port, 1 to 65535, and is {port!r}",
    )
