"""CONTRIBUTING.md names the files that its reader is sent to."""

from __future__ import annotations

import re

from tests.docs.blocks import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
STORAGE = ROOT / "hybrid_runner" / "storage"


def test_every_module_with_storage_calls_is_named_and_every_one_that_is_named_has_some() -> None:
    runs = re.compile(
        r"^from hybrid_runner\.storage\.connections\.statements import .*\bfetch(?:_value)?\b",
        re.MULTILINE,
    )
    calling = {
        path.name for path in STORAGE.glob("*.py") if runs.search(path.read_text(encoding="utf-8"))
    }
    [step] = re.findall(
        r"A function of the same name in `hybrid_runner/storage`:.+?\n\d\. ", PAGE, re.DOTALL
    )
    assert set(re.findall(r"`(\w+\.py)`", step)) == calling
