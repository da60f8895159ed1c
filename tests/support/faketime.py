"""libfaketime, with which a program tells another time than everybody else."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

from tests.support.outside import cache

VARIABLE = "HYBRID_RUNNER_TEST_FAKETIME"
_LIBRARY = "lib/*/faketime/libfaketime.so.1"


def find() -> Path | None:
    """The library: the one named, else what .ci/run fetched, else an installed one."""
    if named := os.environ.get(VARIABLE):
        return Path(named) if Path(named).is_file() else None
    places = (cache() / "faketime" / "usr", Path("/usr"))
    return next(chain.from_iterable(place.glob(_LIBRARY) for place in places), None)


def why_absent() -> str:
    """One line for a person."""
    return f"there is no libfaketime: tools/fetch/faketime gets it, or {VARIABLE} names it"
