from __future__ import annotations

from pathlib import Path

import mypy.api
import pytest

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
        ]
    )
    assert status == 0, said + trouble
