"""Fenced blocks of a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """What stands between the fences, and the word behind the first."""

    language: str
    text: str


def blocks(page: str, *languages: str) -> list[Block]:
    """The fenced blocks of a page in these languages, in order."""
    found = (Block(*match) for match in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))
    return [block for block in found if block.language in languages]
