"""What an application sets up while it is imported is still so afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT = """
import logging, warnings
from hybrid_runner.telemetry.logs.setup import logs_of_import
before = warnings.showwarning
with logs_of_import({level!r}, "console"):
    {application}
"""


def after_import(application: str, then: str, level: str | None = "info") -> str:
    """The stderr of a process in which an application was imported."""
    program = IMPORT.format(level=level, application=application) + then
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


@pytest.mark.parametrize("level", [None, "info"])
def test_the_level_of_our_logger(level: str | None) -> None:
    after_import(
        'logging.getLogger("hybrid_runner").setLevel("ERROR")',
        'assert logging.getLogger("hybrid_runner").level == logging.ERROR',
        level,
    )


def test_no_level_is_set_that_nobody_gave() -> None:
    after_import("pass", 'assert logging.getLogger("hybrid_runner").level == 0', None)


def test_captured_warnings() -> None:
    said = after_import(
        "logging.captureWarnings(True); logging.basicConfig(format='OURS %(message)s')",
        "warnings.warn('of Python')\n"
        "logging.captureWarnings(False)\n"
        "warnings.warn('as Python shows it')",
    )
    captured, shown = [line for line in said.splitlines() if "UserWarning" in line]
    assert captured.startswith("OURS ")
    assert shown.endswith("UserWarning: as Python shows it")
    assert not shown.startswith("OURS ")


def test_a_handler_of_last_resort() -> None:
    after_import(
        "logging.lastResort = mine = logging.StreamHandler()", "assert logging.lastResort is mine"
    )


def test_nothing_is_left_of_ours_where_the_application_sets_up_nothing() -> None:
    after_import(
        "last = logging.lastResort; warnings.warn('at import')",
        "assert warnings.showwarning is before\n"
        "assert logging.lastResort is not last\n"
        "assert logging.getLogger('py.warnings').handlers == []",
    )
