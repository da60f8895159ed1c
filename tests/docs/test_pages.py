"""The blocks of docs/enqueue.md and docs/handlers.md do what the pages say."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import create_engine, func, make_url, select, text, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from hybrid_runner import NewJob
from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import blocks


def load(name: str, source: str) -> ModuleType:
    """A module of that name, importable until the test ends."""
    module = sys.modules[name] = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), vars(module))  # noqa: S102 - our own pages
    return module


@pytest.fixture
def readme_app(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The app.py of the README, on this test's database."""
    monkeypatch.setenv("HYBRID_RUNNER_DSN", dsn)
    [block] = blocks("README.md", "python")
    yield load("app", block.text)
    del sys.modules["app"]


async def run(code: CodeType, names: dict[str, Any]) -> None:
    """Run a block that may await at its top level."""
    pending = eval(code, names)  # noqa: S307 - our own pages
    if inspect.isawaitable(pending):
        await pending


async def test_the_enqueue_page_runs(
    dsn: str, database: Connection, readme_app: ModuleType
) -> None:
    engine = create_engine(make_url(dsn).set(drivername="postgresql+psycopg"))
    await database.execute("CREATE TABLE public.orders (number integer)")
    connection = await asyncpg.connect(dsn)
    with psycopg.connect(dsn) as psycopg_connection:
        names: dict[str, Any] = {
            "app": readme_app.app,
            "connection": connection,
            "psycopg_connection": psycopg_connection,
            "engine": engine,
            "Jsonb": Jsonb,
            "JSONB": JSONB,
            "NewJob": NewJob,
            "Session": Session,
            "func": func,
            "select": select,
            "text": text,
            "type_coerce": type_coerce,
        }
        for block in blocks("docs/enqueue.md", "python", "sql"):
            if block.language == "sql":
                await connection.execute(block.text)
            else:
                await run(
                    compile(block.text, "enqueue.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names
                )
    await connection.close()
    engine.dispose()
    assert names["result"] == {"bytes": 307200}
    receipts = await database.fetch(
        "SELECT payload->>'order' AS number FROM hybrid_runner.jobs WHERE kind = 'receipt'"
    )
    assert {row["number"] for row in receipts} == {"1", "2", "3", "4", "5", "6"}
    assert (
        await database.fetchval(
            "SELECT count(*) FROM hybrid_runner.all_jobs WHERE kind = 'thumbnail' AND priority = 8"
        )
        == 1000
    )


def test_the_handlers_page_is_a_module(tmp_path: Path) -> None:
    module = load(
        "handlers_page", "".join(block.text for block in blocks("docs/handlers.md", "python"))
    )
    del sys.modules["handlers_page"]
    kinds = {kind.name: (kind.executor, kind.wants_job) for kind in module.app.registry}
    assert kinds == {
        "thumbnail": ("async", True),
        "invoice": ("async", False),
        "report": ("thread", False),
        "anything": ("async", False),
        "poll": ("async", True),
        "split": ("thread", False),
        "shrink": ("process", True),
        "transfer": ("async", True),
        "remind": ("async", False),
        "watch": ("async", True),
        "begin": ("async", True),
        "ship": ("async", True),
        "approve": ("async", True),
    }
