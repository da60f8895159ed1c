"""deploy/compose.yaml, brought up on a Docker Engine for a test, without Grafana."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.engine import Engine

ROOT = Path(__file__).parents[2]
IMAGE = "hybrid-runner:test"
OTHERS = ("postgres", "migrate", "roles", "collector", "jaeger", "prometheus")
PASSWORDS = {
    f"{who}_PASSWORD": f"a/b#c@d:e%41?f'g\"h i$$j${{k}}&l={who}"
    for who in ("POSTGRES", "OWNER", "WORKER", "PRODUCER", "READER", "GRAFANA")
}
"""With every character that means something to a shell, an address, SQL or Compose."""
_ASK = """
import sys, http.client
connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=5)
connection.request("GET", sys.argv[1])
print(connection.getresponse().read().decode())
"""


def build(engine: Engine) -> str:
    """The name of the image, made from the checkout."""
    engine.docker(
        "build",
        "--file",
        str(ROOT / "deploy" / "Dockerfile"),
        "--tag",
        IMAGE,
        str(ROOT),
        timeout=500,
    )
    return IMAGE


@dataclass(frozen=True)
class Composition:
    """Its containers, which are named by what `workers` says."""

    engine: Engine
    project: str

    def compose(self, *arguments: str) -> str:
        """What Compose writes."""
        files = ("deploy/compose.yaml", "tests/deploy/composition.yaml")
        named = [word for file in files for word in ("--file", str(ROOT / file))]
        return self.engine.compose(
            "--project-name", self.project, *named, *arguments, timeout=180, variables=PASSWORDS
        )

    def scale(self, workers: int) -> None:
        """Start everything, with so many workers; containers that run already go on."""
        self.compose(
            "up",
            "--detach",
            "--no-build",
            "--no-recreate",
            "--scale",
            f"worker={workers}",
            *OTHERS,
            "worker",
        )

    def healthy(self, container: str) -> bool:
        """Whether the engine's own health check says so."""
        return (
            self.engine.docker("inspect", "--format", "{{.State.Health.Status}}", container)
            == "healthy"
        )

    def workers(self) -> list[str]:
        """The containers of workers, short ids: what they call themselves too."""
        return sorted(
            line[:12] for line in self.compose("ps", "--all", "--quiet", "worker").split()
        )

    def page(self, worker: str, path: str) -> Any:
        """What a worker's page says, asked from inside its container."""
        return json.loads(self.engine.docker("exec", worker, "python", "-c", _ASK, path))

    def psql(self, role: str, statement: str) -> list[str]:
        """The rows, as a container of its own gets them that logs in as that role."""
        password = PASSWORDS[f"{role.removeprefix('jobs_').upper()}_PASSWORD"]
        dsn = f"postgresql://{role}@postgres:5432/postgres"
        psql = (
            "--env",
            f"PGPASSWORD={password}",
            "postgres:18",
            "psql",
            dsn,
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--quiet",
            "--set",
            "ON_ERROR_STOP=1",
        )
        return self.engine.docker(
            "run", "--rm", "--network", f"{self.project}_default", *psql, "--command", statement
        ).splitlines()

    def published(self, service: str, port: int) -> str:
        """Where this machine reaches that port."""
        return f"http://{self.compose('port', service, str(port))}"


@contextmanager
def composed(engine: Engine) -> Iterator[Composition]:
    """One that is not up yet, and that leaves nothing behind."""
    composition = Composition(engine, f"hybrid-runner-test-{os.getpid()}")
    try:
        yield composition
    finally:
        composition.compose("down", "--volumes", "--timeout", "1")
