"""Fills the tables of docs/performance.md and copies its pictures: `python -m benchmarks.page
FOLDER`, where FOLDER has the results. A block of the page begins with `<!-- results: NAME -->` and
ends with `<!-- end -->`; NAME is that of a file in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks import rows
from hybrid_runner.bench import table

DOCS = Path(__file__).parent.parent / "docs"
_BLOCK = re.compile(r"(<!-- results: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TABLES = {"results": table.markdown, "peers": rows.markdown}


def filled(page: str, results: dict[str, dict[str, Any]], pictures: list[str]) -> str:
    """The page with the blocks of these results written anew; other blocks stay."""

    def block(found: re.Match[str]) -> str:
        name = found[2]
        if name not in results:
            return found[0]
        prefix = "peers_" if name == "peers" else ""
        shown = [f"{prefix}{scenario}" for scenario in results[name]["scenarios"]]
        images = "".join(
            f"\n![{picture}](pictures/{picture}.png)\n" for picture in shown if picture in pictures
        )
        return f"{found[1]}\n{_TABLES[name](results[name])}{images}\n{found[3]}"

    return _BLOCK.sub(block, page)


def main() -> int:
    """Read the folder, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    found = {name: folder / f"{name}.json" for name in _TABLES}
    results = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in found.items()
        if path.exists()
    }
    if not results:
        print(f"there is neither results.json nor peers.json in {folder}", file=sys.stderr)
        return 1
    (DOCS / "pictures").mkdir(exist_ok=True)
    pictures = sorted(folder.glob("*.png"))
    for picture in pictures:
        shutil.copy(picture, DOCS / "pictures")
    page = DOCS / "performance.md"
    page.write_text(
        filled(page.read_text(encoding="utf-8"), results, [path.stem for path in pictures]),
        encoding="utf-8",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
