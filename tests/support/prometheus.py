"""A real Prometheus and its promtool. The fixture `promtool` runs the tool, `prometheus` starts a
server that scrapes.

`with prometheus({"worker": page}) as server: await server.until('up{job="worker"} == 1')`; its
first scrape is 5 s after its start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import yaml

from tests.support.outside import answers, cache, first_program, running
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, until

VARIABLE = "HYBRID_RUNNER_TEST_PROMETHEUS"
"""Names the server; promtool lies beside it."""


@dataclass(frozen=True)
class Promtool:
    """Runs it."""

    program: str

    def __call__(
        self, *arguments: str, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What `promtool arguments` says; the text is its input."""
        return subprocess.run(
            [self.program, *arguments],
            input=text or "",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@dataclass(frozen=True)
class Prometheus:
    """Where it listens, and questions to it."""

    page: str

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples, each with `metric` (labels) and `value` (time, text); an expression that is
        wrong is an error.
        """
        answer = await self._ask("query", {"query": expression})
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    async def until(self, expression: str, patience: float = PATIENCE) -> list[dict[str, Any]]:
        """The samples, once there are some."""
        return await until(lambda: self.query(expression), patience=patience, what=expression)

    async def rules(self) -> list[dict[str, Any]]:
        """All rules with their state and health."""
        groups = (await self._ask("rules", {}))["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    async def _ask(self, what: str, parameters: dict[str, str]) -> dict[str, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.page}/api/v1/{what}", params=parameters) as response,
        ):
            answer: dict[str, Any] = await response.json()
        assert answer["status"] == "success", answer
        return answer


def find(name: str = "prometheus") -> str | None:
    """The program: beside the one named, else what tools/fetch got, else an installed one."""
    named = os.environ.get(VARIABLE)
    return first_program(
        named and Path(named).parent / name,
        cache() / "prometheus/usr/bin" / name,
        shutil.which(name),
    )


def why_absent() -> str:
    """One line for a person."""
    return (
        f"there is no Prometheus with its promtool: tools/fetch/prometheus gets them, or {VARIABLE}"
        " names one"
    )


@contextmanager
def started(
    pages: Mapping[str, str], *, rules: Path | None = None, interval: str = "200ms"
) -> Iterator[Prometheus]:
    """A server that scrapes each page under the name of a job, and evaluates a file of rules."""
    program = find()
    assert program is not None
    [port] = free_ports(1)
    configuration = {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": interval,
        },
        "scrape_configs": [_scraped(name, page) for name, page in pages.items()],
        "rule_files": [str(rules)] if rules else [],
    }
    with tempfile.TemporaryDirectory(prefix="hybrid-runner-prometheus-") as folder:
        file = Path(folder) / "prometheus.yml"
        file.write_text(yaml.safe_dump(configuration))
        command = [
            program,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        place = f"http://127.0.0.1:{port}"
        with running(command, lambda: answers(f"{place}/-/ready")):
            yield Prometheus(place)


def _scraped(name: str, page: str) -> dict[str, Any]:
    parts = urlsplit(page)
    return {
        "job_name": name,
        "metrics_path": parts.path or "/metrics",
        "static_configs": [{"targets": [parts.netloc]}],
    }
