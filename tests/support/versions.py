"""The PostgreSQL versions that the matrix test can find."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.outside import cache

VARIABLE = "HYBRID_RUNNER_TEST_POSTGRES"
MAJORS = (14, 15, 16, 17, 18)


def folder() -> Path:
    """One folder per version, named like 16.15, each with bin/postgres; tools/fetch/postgres fills
    it.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return cache() / "postgres"


def find() -> dict[int, Path]:
    """The folder with the programs of each major version that is there."""
    return {
        major: path.parent
        for major in MAJORS
        for path in sorted(folder().glob(f"{major}.*/bin/postgres"))
        if os.access(path, os.X_OK)
    }


def why_absent(major: int) -> str:
    """One line for a person."""
    return f"PostgreSQL {major} is not in the folder {VARIABLE} names; tools/fetch/postgres gets it"


def summary() -> str:
    """Which are there, and loudly which are not."""
    found = find()
    absent = ", ".join(str(major) for major in MAJORS if major not in found)
    present = ", ".join(str(major) for major in found) or "none"
    return f"{present} (SKIPPED: {absent}, see tools/fetch)" if absent else present
