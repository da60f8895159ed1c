from __future__ import annotations

import re

from hybrid_runner.settings import PREFIX, Settings, unknown_variables
from tests.docs.blocks import ROOT
from tests.docs.settings_page import PAGE, page


def test_the_settings_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.docs.settings_page"
    )


def test_the_settings_page_has_every_field_with_its_name_in_the_environment_and_its_description() -> (
    None
):
    text = page()
    for name, field in Settings.fields().items():
        assert f"| `{name}` | `{PREFIX}{name.upper()}` |" in text
        assert field.description
        assert field.description in text


def test_whatever_names_a_variable_names_a_setting() -> None:
    """A misspelled one would be ignored, and a test that sets it would test something else."""
    folders = ("docs", "deploy", "examples", "tests/behaviour", "tests/cli/fleets.py")
    files = [
        file
        for folder in folders
        for file in (ROOT / folder, *(ROOT / folder).rglob("*"))
        if file.suffix in {".md", ".py", ".yaml", ".yml", ".service", ".env", ""} and file.is_file()
    ]
    named = {
        (str(file.relative_to(ROOT)), variable)
        for file in (ROOT / "README.md", *files)
        for variable in re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert {each for each in named if unknown_variables({each[1]: ""})} == set()
