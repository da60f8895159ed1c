"""Every line of ours has an event, and docs/logs.md says what each event means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from hybrid_runner.telemetry.log_events import LogEvent

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hybrid_runner"
PAGE = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
LEVELS = {"debug", "info", "warning", "error", "exception", "log"}
ROW = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| ([a-z, ]+) \|", re.MULTILINE)
NAMES = set(get_args(LogEvent))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "log_events.py":
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def calls_of_log() -> Iterator[tuple[str, str, ast.expr | None]]:
    """Each place that logs, its level, and what it gives as `extra`."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "log"
            ):
                extra = next((each.value for each in node.keywords if each.arg == "extra"), None)
                yield f"{path}:{node.lineno}", node.func.attr.replace("exception", "error"), extra


def event_of(extra: ast.expr | None) -> str | None:
    """The event of one line, where it is said there."""
    if not isinstance(extra, ast.Call) or not isinstance(extra.func, ast.Name):
        return None
    position = {"log_event": 0, "job_fields": 1}[extra.func.id]
    name = extra.args[position]
    return str(name.value) if isinstance(name, ast.Constant) else None


def test_every_line_has_an_event() -> None:
    bare = [
        place for place, _, extra in calls_of_log() if extra is None or isinstance(extra, ast.Dict)
    ]
    assert bare == [], "give it extra=log_event(…) or extra=job_fields(claim, …)"


def test_every_event_is_of_some_line() -> None:
    said = {
        node.value
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
    }
    assert NAMES - said == set()


def test_the_page_has_every_event_once_and_at_the_levels_that_the_code_has() -> None:
    rows = ROW.findall(PAGE)
    assert sorted(name for name, _ in rows) == sorted(NAMES)
    documented = {name: set(levels.split(", ")) for name, levels in rows}
    for place, level, extra in calls_of_log():
        name = event_of(extra)
        if name is not None and level != "log":
            assert level in documented[name], f"{place}: {name} is logged as {level}"
