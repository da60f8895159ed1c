from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def parsed(name: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def instructions(word: str) -> list[str]:
    """What follows that word in the Dockerfile, in order."""
    return re.findall(rf"^{word} (.+)$", DOCKERFILE, re.MULTILINE)


def copied() -> list[str]:
    """What the image is built from."""
    return [
        source
        for line in instructions("COPY")
        if not line.startswith("--")
        for source in line.split()[:-1]
    ]


def test_the_image_is_built_from_all_that_a_wheel_needs(tmp_path: Path) -> None:
    for name in copied():
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(tmp_path / "out"),
    ]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    [wheel] = (tmp_path / "out").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"hybrid_runner/web/routes.py", "hybrid_runner/py.typed"} <= names
    assert {
        f"hybrid_runner/{path.relative_to(ROOT)}" for path in (ROOT / "sql").rglob("*.sql")
    } <= names


def test_docker_is_sent_what_the_image_is_built_from_and_nothing_else() -> None:
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and line[0] != "#"
    ]
    assert rules[0] == "*"
    let_through = {rule[1:] for rule in rules if rule.startswith("!")}
    assert {
        name if name in let_through else str(Path(name).parent) for name in copied()
    } == let_through


def test_process_1_is_the_worker_and_not_root() -> None:
    """A13: a shell in between would keep the signal to itself."""
    assert [json.loads(line) for line in instructions("ENTRYPOINT")] == [["hybrid-runner"]]
    assert instructions("USER") == ["worker"]
    assert {source.split(" AS ")[0] for source in instructions("FROM")} == {
        "python:3.11-slim-bookworm",
        "scratch",
    }


def test_the_health_check_is_the_probe_that_the_image_has() -> None:
    [check] = instructions("HEALTHCHECK")
    _, _, command = check.partition("CMD ")
    assert json.loads(command) == ["probe", "healthy"]
    assert "deploy/probe.py /opt/hybrid-runner/bin/probe" in instructions("COPY")
    assert os.access(ROOT / "deploy" / "probe.py", os.X_OK)


def test_the_collectors_pipelines_are_declared_and_lead_to_jaeger_and_prometheus() -> None:
    """F1 F4"""
    collector = parsed("otel-collector.yaml")
    service = collector["service"]
    assert set(service["extensions"]) == set(collector["extensions"])
    for part in ("receivers", "processors", "exporters"):
        assert {
            name for pipeline in service["pipelines"].values() for name in pipeline[part]
        } == set(collector[part])
    assert set(collector["receivers"]["otlp"]["protocols"]) == {"http", "grpc"}
    assert service["pipelines"]["traces"]["exporters"] == ["otlp"]
    assert service["pipelines"]["metrics"]["exporters"] == ["prometheus"]
    assert collector["exporters"]["otlp"]["endpoint"].endswith(":-jaeger:4317}")
