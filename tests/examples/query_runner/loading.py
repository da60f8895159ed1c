"""The example's jobs as a test wants them: all times shorter, or dying at one of their awaits."""

from __future__ import annotations

import ast
import os
import re
import signal
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from examples.query_runner.warehouse import Warehouse

APP = Path(__file__).parents[3] / "examples" / "query_runner" / "app.py"
_DURATION = re.compile(r"([0-9.]+)([sm])")
_SECONDS = {"s": 1.0, "m": 60.0}


@dataclass(frozen=True)
class Await:
    """One `await` of the module, and one of its sides."""

    number: int
    function: str
    what: str
    side: Literal["before", "after"]

    def __str__(self) -> str:
        return f"{self.function}: {self.side} {self.what}"


def awaits() -> list[Await]:
    """Both sides of every await of the jobs, in the order of their lines."""
    return [
        Await(number, function.name, ast.unparse(found.value), side)
        for number, (function, found) in enumerate(_found(ast.parse(APP.read_text("utf-8"))))
        for side in ("before", "after")
    ]


def load(
    dsn: str, warehouse: str, *, faster: float = 1, dies: Await | None = None, patience: float = 10
) -> Any:
    """A module of its own with a Runner of its own. Every duration that it names is so many times
    shorter, but for how long ended jobs are kept.
    """
    tree = ast.parse(APP.read_text("utf-8"))
    if dies is not None:
        _found(tree)[dies.number][1].value = _watched(_found(tree)[dies.number][1].value)
    tree = ast.fix_missing_locations(_Shorter(faster).visit(tree))
    module = sys.modules["a_query_runner"] = ModuleType("a_query_runner")  # pydantic looks there
    vars(module)["_die_at"] = None if dies is None else _die(dies)
    exec(compile(tree, str(APP), "exec"), vars(module))  # noqa: S102  # our own example
    made: Any = module
    made.warehouse = Warehouse(warehouse, patience)
    made.app.use(dsn, grace=5, heartbeat=0.5)
    return made


def _found(tree: ast.Module) -> list[tuple[ast.AsyncFunctionDef, ast.Await]]:
    found = [
        (function, each)
        for function in tree.body
        if isinstance(function, ast.AsyncFunctionDef)
        for each in ast.walk(function)
        if isinstance(each, ast.Await)
    ]
    return sorted(found, key=lambda pair: (pair[1].lineno, pair[1].col_offset))


def _watched(awaited: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("_die_at", ast.Load()), [awaited], [])


def _die(point: Await) -> Any:
    async def die_at(awaited: Awaitable[object]) -> object:
        if point.side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await awaited
        os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return die_at


class _Shorter(ast.NodeTransformer):
    def __init__(self, faster: float) -> None:
        self._faster = faster

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        return node if (node.arg or "").startswith("keep_") else self._visited(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node  # a reconciler: its turns cannot be shorter

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and (found := _DURATION.fullmatch(node.value)):
            seconds = float(found[1]) * _SECONDS[found[2]] / self._faster
            return ast.Constant(f"{seconds:.3f}s")
        return node

    def _visited(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        return node
