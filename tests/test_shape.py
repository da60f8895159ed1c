from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = (
    "pyproject.toml",
    "otel-collector.yaml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
)
FOLDERS = ("hybrid_runner", "sql", "tests", "deploy", "docs", "examples", "benchmarks")


def required(requirements: list[str]) -> set[str]:
    """The names of the distributions."""
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


def imported(folder: str) -> set[str]:
    """Every module that is imported anywhere in a folder, also within functions."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    return names


@pytest.mark.parametrize("name", FILES)
def test_the_files_at_the_top_are_there(name: str) -> None:
    """F1"""
    assert (ROOT / name).read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folders_at_the_top_are_there_and_not_empty(name: str) -> None:
    """F1"""
    assert any(path.is_file() and path.stat().st_size for path in (ROOT / name).iterdir())


@pytest.mark.parametrize(
    ("distribution", "module"),
    [
        ("asyncpg", "asyncpg"),
        ("aiohttp", "aiohttp"),
        ("pydantic", "pydantic"),
        ("orjson", "orjson"),
        ("opentelemetry-sdk", "opentelemetry.sdk"),
    ],
)
def test_what_it_is_built_on_is_required_and_used(distribution: str, module: str) -> None:
    """F2"""
    assert distribution in required(PYPROJECT["project"]["dependencies"])
    assert any(f"{name}.".startswith(f"{module}.") for name in imported("hybrid_runner"))


def test_what_it_is_tested_with_is_required_and_used(request: pytest.FixtureRequest) -> None:
    """F2"""
    assert {"pytest-asyncio", "testcontainers"} <= required(
        PYPROJECT["project"]["optional-dependencies"]["dev"]
    )
    assert request.config.pluginmanager.hasplugin("asyncio")
    assert request.config.getini("asyncio_mode") == "auto"
    assert any(name.startswith("testcontainers.") for name in imported("tests"))


def test_no_constructor_has_more_than_eight_arguments() -> None:
    """What needs more is made of parts that have names of their own."""
    found = []
    for path in (ROOT / "hybrid_runner").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if len(arguments) > 1 + 8:
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []
