"""A real Docker Engine, at DOCKER_HOST or at the usual socket. The fixture `docker_engine` runs
docker and Compose on it.

Under tools/with_engine it has the images python:3.11-slim-bookworm and postgres:18, or stand-ins
(tools/images/README.md).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tests.support.waiting import PATIENCE

USUAL = "unix:///var/run/docker.sock"


@dataclass(frozen=True)
class Engine:
    """Runs commands on it; nothing is cleaned up but what a test removes."""

    host: str
    program: str

    def docker(
        self,
        *arguments: str,
        text: str | None = None,
        timeout: float = PATIENCE,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """What the command writes; one that fails is an error with all it said."""
        environment = {**os.environ, **variables, "DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "0"}
        ended = subprocess.run(
            [self.program, *arguments],
            input=text or "",
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
        assert ended.returncode == 0, (
            f"docker {' '.join(arguments)}: {ended.stdout[-2000:]} {ended.stderr[-2000:]}"
        )
        return ended.stdout.strip()

    def compose(
        self,
        *arguments: str,
        timeout: float = PATIENCE,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Run `docker compose` with these arguments."""
        return self.docker("compose", *arguments, timeout=timeout, variables=variables)


def find() -> Engine | None:
    """The engine that answers, if the command is there too."""
    host, program = os.environ.get("DOCKER_HOST") or USUAL, shutil.which("docker")
    return Engine(host, program) if program and answers(host) else None


def answers(host: str) -> bool:
    """Whether somebody listens there; one far away is taken at its word."""
    if not host.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(host.removeprefix("unix://")) == 0


def why_absent() -> str:
    """One line for a person."""
    return (
        "no Docker Engine answers at DOCKER_HOST, or there is no command docker: tools/with_engine"
        " COMMAND brings both"
    )
