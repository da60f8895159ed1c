from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)?(?:#([\w-]+))?\)")


def anchors(text: str) -> set[str]:
    """The anchors that headings get."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: object) -> None:
    source = ROOT / str(page)
    for path, anchor in LINK.findall(source.read_text(encoding="utf-8")):
        target = (source.parent / path).resolve() if path else source
        assert target.exists(), f"{source.name} links to {path}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), (
                f"{source.name} links to {path}#{anchor}"
            )


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        waiting += [
            (page.parent / path).resolve()
            for path, _ in LINK.findall(page.read_text(encoding="utf-8"))
            if path
        ]
    assert set(PAGES) - seen == set()


def test_the_index_lists_every_page_once() -> None:
    index = ROOT / "docs" / "README.md"
    rows = re.findall(r"^\| \[.+?\]\((.+?)\) \|", index.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [(index.parent / path).resolve() for path in rows]
    assert len(listed) == len(set(listed))
    assert {page for page in PAGES if page.parent == index.parent} - {index} <= set(listed)
