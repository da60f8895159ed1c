"""What MODULE:APP may name, and the one line for each wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import NOBODY, fails

FILES = {
    "tasks": (
        "from hybrid_runner import Runner\napp = Runner()\nclass holder:\n    inner ="
        " Runner()\nnumber = 3\n"
    ),
    "empty": "",
    "no_handlers": "from hybrid_runner import Runner\napp = Runner()\n",
    "needs": "import os\nimport there_is_no_such_package\n",
    "wrong": "def divide():\n    return 1 / 0\n\ndivide()\n",
    "syntax": "x = (\n",
    "leaves": "import sys\nsys.exit(3)\n",
    "twice": (
        "from hybrid_runner import Runner\napp = Runner()\nfor _ in 'ab':\n    @app.job('a')\n   "
        " async def a(p: dict): ...\n"
    ),
}
BAD = [
    ("taks:app", ["there is no module 'taks'", "did you mean 'tasks'?"]),
    ("tasks.inner:app", ["there is no module 'tasks.inner'"]),
    (
        "needs:app",
        [
            (
                "importing 'needs' raised ModuleNotFoundError: No module named"
                " 'there_is_no_such_package'"
            ),
            "needs.py:2",
        ],
    ),
    ("wrong:app", ["importing 'wrong' raised ZeroDivisionError: division by zero", "wrong.py:2"]),
    ("syntax:app", ["importing 'syntax' raised SyntaxError", "syntax.py, line 1"]),
    ("leaves:app", ["importing 'leaves' raised SystemExit: 3", "leaves.py:2"]),
    (
        "twice:app",
        ["importing 'twice' raised ConfigurationError: kind 'a' has two handlers", "twice.py:"],
    ),
    ("tasks:ap", ["module 'tasks' has no 'ap'", "there is tasks:app"]),
    ("empty:app", ["module 'empty' has no 'app'", "there is no Runner in it: app = Runner()"]),
    ("tasks:number", ["tasks:number is of type int, not a Runner", "there is tasks:app"]),
    ("tasks:holder.outer", ["module 'tasks' has no 'holder.outer'"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("target", "expected"), BAD, ids=[target for target, _ in BAD])
def test_target_that_cannot_be_used_is_one_line(
    target: str, expected: list[str], folder: Path
) -> None:
    line = fails("worker", target, "--dsn", NOBODY, cwd=folder)
    for part in expected:
        assert part in line


def test_app_may_be_dotted(folder: Path) -> None:
    line = fails(
        "worker",
        "tasks:holder.inner",
        "--dsn",
        NOBODY,
        cwd=folder,
        HYBRID_RUNNER_START_TIMEOUT="0.1",
    )
    assert "does not answer" in line


def test_app_without_handlers_is_refused(folder: Path, dsn: str) -> None:
    assert "this app has no handlers" in fails(
        "worker", "no_handlers:app", "--dsn", dsn, cwd=folder
    )


def test_import_that_raises_with_the_password_is_told_without_it(folder: Path) -> None:
    dsn = "postgresql://app:Wombat-7@db.invalid/jobs"
    (folder / "tells.py").write_text(f"raise ValueError({dsn!r})\n", encoding="utf-8")
    line = fails("worker", "tells:app", cwd=folder, HYBRID_RUNNER_DSN=dsn)
    assert "ValueError: postgresql://app:***@db.invalid/jobs" in line
