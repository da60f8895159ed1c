from __future__ import annotations

from pathlib import Path

import mypy.api
import pytest

from tests.docs.blocks import blocks

pytestmark = pytest.mark.xdist_group("mypy")  # two at a time lock each other out of its cache

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.timeout(300)
def test_type_checkers_see_the_payload_and_the_result_of_every_call() -> None:
    """`warn_unused_ignores` is on: a wrong call that passes is an error too."""
    said, trouble, status = mypy.api.run(
        [
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--strict",
            "--warn-unused-ignores",
            str(HERE / "public_api.py"),
            str(HERE / "handlers_of_waiting.py"),
            str(HERE / "monitors_api.py"),
        ]
    )
    assert status == 0, said + trouble


@pytest.mark.parametrize(
    "page", ["docs/handlers.md", "docs/waiting.md", "docs/resilience.md", "docs/schedules.md"]
)
@pytest.mark.timeout(300)
def test_the_pages_are_typed_as_a_user_writes_them(page: str, tmp_path: Path) -> None:
    module = tmp_path / "page.py"
    module.write_text("".join(block.text for block in blocks(page, "python")), encoding="utf-8")
    said, trouble, status = mypy.api.run(
        ["--config-file", str(ROOT / "pyproject.toml"), "--strict", str(module)]
    )
    assert status == 0, said + trouble
