"""What decision pages say about the code can still be found there."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("deploy/*.md"), *ROOT.glob("docs/**/*.md")])
EXPLAINED = [page for page in PAGES if page.name != "CHANGELOG.md"]  # that one names the past
OF_OTHERS = {
    "batch_size",
    "event_log",
    "hdb_catalog",
    "http_request",
    "pg_net",
    "supabase_functions",
    "default_pool_size",
    "max_prepared_statements",
    "wal_writer_delay",
}
MADE_UP = {
    "doorbell_1",
    "jobs_owner",
    "last_error",
    "shop_worker",
    "test_job_committed_during_a_look_is_not_lost",
}
SOURCES = (
    "hybrid_runner/**/*.py",
    "sql/**/*.sql",
    "tests/**/*.py",
    "tools/**/*.py",
    "pyproject.toml",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@cache
def words() -> set[str]:
    """Every word of the code, and the names of its files."""
    files = [
        path for pattern in SOURCES for path in ROOT.glob(pattern) if path.parent.name != "docs"
    ]
    texts = [path.read_text(encoding="utf-8") for path in files]
    return {word for text in texts for word in re.findall(r"\w+", text)} | {
        path.stem for path in files
    }


def name_of(requirement: str) -> str:
    """Of a package, without its versions."""
    return re.split(r"[<>=\[~ ]", requirement)[0]


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    titles = {
        path.name: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        for path in DECISIONS
    }
    assert re.findall(r"^- \[(.+)\]\((.+)\)$", index, re.MULTILINE) == [
        (title, name) for name, title in titles.items()
    ]


def test_every_dependency_says_what_it_is_for_and_no_other_is_named() -> None:
    page = (ROOT / "docs" / "decisions" / "0007-dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", page, re.MULTILINE)[1:]
    assert {row for row in rows if not row.startswith("extra ")} == {
        name_of(wanted) for wanted in PROJECT["dependencies"]
    }
    extras = {
        row.removeprefix("extra ").split(":")[0].strip("`")
        for row in rows
        if row.startswith("extra ")
    }
    assert extras == set(PROJECT["optional-dependencies"]) - {"dev"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(
        re.findall(
            r"`((?:hybrid_runner|sql|tests|tools|deploy|docs|examples|benchmarks)/[\w/-]*\.\w+)`",
            text,
        )
    )
    named -= {name for name in named if "NNNN" in name or "/name." in name}  # patterns, not files
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", EXPLAINED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_that_a_page_explains_is_in_the_code(page: Path) -> None:
    """A setting, a query, a table or a column that was renamed is found here."""
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]\w*_\w+)(?:\(.*?\))?`", text))
    named |= {part for pair in re.findall(r"`([a-z]\w*)\.([a-z]\w*)`", text) for part in pair}
    named = {name for name in named if not name.startswith("hybrid_runner_")}  # metrics have a test
    assert sorted(named - words() - OF_OTHERS - MADE_UP) == []
