"""The drawing is compared with the code, arrow by arrow, in both directions."""

from __future__ import annotations

import re
from functools import cache
from itertools import permutations, product

import grimp

from hybrid_runner.model.jobs import State
from hybrid_runner.policy.doorbell import (
    Answer,
    BellState,
    Doorbell,
    ListenerLost,
    Looked,
    Mode,
    Muted,
    Reason,
    Woken,
)
from tests.docs.blocks import ROOT, blocks

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DRAWING, STATES, MODES = (block.text for block in blocks("docs/architecture.md", "mermaid"))
NAME = r"(\w+)(?:\[\(([\w.]+)\)\])?"
QUERIES = ROOT / "sql" / "queries"

Arrows = set[tuple[str, str]]


@cache
def code() -> grimp.ImportGraph:
    """The imports of the package."""
    return grimp.build_graph("hybrid_runner", cache_dir=None)


def drawn(arrow: str) -> Arrows:
    """The arrows of one kind in the drawing, from → to."""
    return {
        (match[1], match[3])
        for match in re.finditer(rf"^\s*{NAME} {arrow} {NAME}$", DRAWING, re.MULTILINE)
    }


def imports_between_packages() -> Arrows:
    """Who imports whom at the top level; the public names in __init__ and __main__ are no part."""
    return {
        (importer, imported)
        for module in code().modules
        for other in code().find_modules_directly_imported_by(module)
        if (importer := top(module)) and (imported := top(other)) and importer != imported
    }


def top(module: str) -> str | None:
    """The package or module right below hybrid_runner."""
    name = ([*module.split("."), ""])[1]
    return None if name in ("", "__main__") else name


def without_implied(arrows: Arrows) -> Arrows:
    """Only the arrows that do not follow from others."""
    followers: dict[str, set[str]] = {}
    for importer, imported in arrows:
        followers.setdefault(importer, set()).add(imported)

    @cache
    def reachable(name: str) -> frozenset[str]:
        return frozenset(followers.get(name, set())).union(
            *(reachable(next_one) for next_one in followers.get(name, ()))
        )

    return {
        (a, b) for a, b in arrows if not any(b in reachable(other) for other in followers[a] - {b})
    }


def test_the_thin_arrows_are_the_imports_between_packages() -> None:
    assert drawn("-->") == without_implied(imports_between_packages())


def test_the_thick_arrows_join_real_modules_and_queries() -> None:
    path = drawn(r"==>\|\w+\|")
    assert path
    for name in {name for arrow in path for name in arrow}:
        is_folder = f"hybrid_runner.{name}" in code().modules
        assert is_folder or name in stages() or (QUERIES / f"{name}.sql").is_file(), name


def test_every_arrow_of_the_drawing_was_read() -> None:
    lines = [line for line in DRAWING.splitlines() if "-->" in line or "==>" in line]
    assert len(lines) == len(drawn("-->")) + len(drawn(r"==>\|\w+\|"))


def stages() -> dict[str, str]:
    """The modules of the worker that the thick arrows join, by the names that the drawing has."""
    drawn_names = {name for arrow in drawn(r"==>\|\w+\|") for name in arrow}
    return {
        name: module
        for module in code().modules
        if module.startswith("hybrid_runner.worker.")
        and (name := module.rpartition(".")[2]) in drawn_names
    }


def test_the_stages_of_the_worker_do_not_import_each_other() -> None:
    assert set(stages()) == {"listener", "claimer", "executor", "settler"}
    for one, another in permutations(stages().values(), 2):
        assert not code().direct_import_exists(importer=one, imported=another)


def test_the_map_has_every_folder_and_no_other() -> None:
    rows = re.findall(r"^\| `((?:hybrid_runner|sql)/[\w/]+)` \| \S", PAGE, re.MULTILINE)
    code_folders = {path.parent for path in ROOT.glob("hybrid_runner/**/*.py")}
    sql_folders = {path.parent for path in ROOT.glob("sql/*/*.sql")}
    there = (code_folders | sql_folders) - {ROOT / "hybrid_runner"}
    assert sorted(rows) == sorted(path.relative_to(ROOT).as_posix() for path in there)


def test_every_file_that_the_page_names_is_there() -> None:
    named = {name for name in re.findall(r"`([\w./]+\.(?:py|sql))`", PAGE) if "/name." not in name}
    folders = (ROOT, ROOT / "hybrid_runner", QUERIES)
    assert len(named) > 50
    assert [
        name for name in sorted(named) if not any((folder / name).is_file() for folder in folders)
    ] == []


def test_the_states_are_all_drawn_and_every_change_names_its_query() -> None:
    changes = re.findall(r"^\s*(\S+) --> (\S+) : (\w+)$", STATES, re.MULTILINE)
    assert {name for change in changes for name in change[:2]} == {
        state.value for state in State
    } | {"[*]"}
    assert all((QUERIES / f"{query}.sql").is_file() for _, _, query in changes)


def test_the_doorbells_arrows_are_its_transitions() -> None:
    yes_or_no = (False, True)
    answers: list[Answer] = [
        ListenerLost(),
        Muted(undone=True),
        *(
            Woken(reason, hearing, free)
            for reason, hearing, free in product(Reason, yes_or_no, yes_or_no)
        ),
        *(
            Looked(found, full, swept, brisk)
            for found, full, swept, brisk in product(yes_or_no, repeat=4)
        ),
    ]
    made = {
        (mode.value, after.mode.value)
        for mode, answer in product(Mode, answers)
        if not (mode is Mode.FULL and isinstance(answer, Looked))
        and (after := Doorbell().step(BellState(mode), answer)[0]).mode is not mode
    }
    # That the listener was lost, or lost and back, is drawn once.
    to_deaf = {(mode.value, "deaf") for mode in Mode if mode is not Mode.DEAF}
    back = {(mode.value, "falling") for mode in (Mode.FULL,)}
    drawn_modes = set(re.findall(r"^\s*(\w+) --> (\w+) :", MODES, re.MULTILINE))
    assert drawn_modes | to_deaf == made - back
