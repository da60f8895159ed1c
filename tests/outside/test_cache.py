"""tools/fetch/cache.sh: the cache is one for all checkouts of a machine, so several may fill it at
once.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "fetch" / "cache.sh"
RACE = """
set -euo pipefail
. "$SCRIPT"
work_aside
target="$cache/program"
make() { mkdir "$unfinished/$1"; echo "$1" >"$unfinished/$1/version"; }
for name in $BEFORE one two; do make "$name"; done
[ -z "$BEFORE" ] || place "$unfinished/$BEFORE" "$target"
# Another script comes in between, in the last step of this one.
mv() {
    if [ "${*: -2:1}" = "$unfinished/one" ]; then
        (unset -f mv; place "$unfinished/two" "$target")
    fi
    command mv "$@"
}
place "$unfinished/one" "$target"
"""


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What bash makes of it, with a cache of its own."""
    environment = os.environ | {"SCRIPT": str(SCRIPT), "XDG_CACHE_HOME": str(folder)} | variables
    return subprocess.run(
        ["bash", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def held(folder: Path) -> dict[str, str]:
    """Every file in the cache, and what is in it."""
    cache = folder / "hybrid-runner-ci"
    return {
        str(file.relative_to(cache)): file.read_text().strip()
        for file in cache.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("before", ["", "old"])
def test_of_two_that_place_a_folder_at_once_one_wins_and_neither_fails(
    before: str, tmp_path: Path
) -> None:
    raced = run(RACE, tmp_path, BEFORE=before)
    assert (raced.returncode, raced.stderr) == (0, "bash: another has just placed program\n")
    assert held(tmp_path) == {"program/version": "two"}


def test_what_is_placed_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    script = (
        '. "$SCRIPT"; work_aside; echo {0} >"$unfinished/file"; place "$unfinished/file"'
        ' "$cache/kept/file"'
    )
    for version in ("old", "new"):
        assert run(script.format(version), tmp_path).returncode == 0
    assert held(tmp_path) == {"kept/file": "new"}


def test_what_cannot_be_placed_is_said(tmp_path: Path) -> None:
    script = (
        'set -euo pipefail; . "$SCRIPT"; work_aside; mkdir "$unfinished/out" "$cache"/file; rmdir'
        ' "$cache"/file; : >"$cache/file"'
    )
    failed = run(f'{script}; place "$unfinished/out" "$cache/file"; echo on', tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.endswith("/file cannot be put in its place\n")
