"""docs/glossary.md defines each term of art that users meet, and metaphors that it lacks are not
used.
"""

from __future__ import annotations

import re

import pytest

from hybrid_runner.settings import Settings
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
DEFINED = dict(re.findall(r"^\| ([a-z -]+) \| ([A-Z].*) \|$", PAGE, re.MULTILINE))

TERMS = {
    "archive": "archived?",
    "asleep": "asleep",
    "attempt": "attempts?",
    "awake": "awake",
    "breaker": "breakers?",
    "budget": "budgets?",
    "claim": "claims?",
    "clean-up": "clean-ups?",
    "collect": "collect(s|ed)?",
    "cool-down": "cool-downs?",
    "deaf": "deaf",
    "declared": "declare[ds]?",
    "doorbell": "doorbells?",
    "due": "due",
    "duty": "dut(y|ies)",
    "expired": "expired",
    "fallback poll": "fallback polls?",
    "falling asleep": "falling asleep",
    "fleet": "fleets?",
    "follow-up": "follow-ups?",
    "frontier": "frontiers?",
    "full": "full",
    "grace": "grace",
    "half-open": "half-open",
    "handler": "handlers?",
    "heartbeat": "heartbeats?",
    "horizon": "horizon",
    "jitter": "jitter",
    "job": "jobs?",
    "key": "keys?",
    "kind": "kinds?",
    "lane": "lanes?",
    "late row": "late rows?",
    "lease": "leases?",
    "listener": "listeners?",
    "look": "looks",
    "memory": "memory",
    "missed": "missed",
    "mute": "mute[ds]?",
    "news": "news",
    "orphan": "orphan(s|ed)?",
    "outcome": "outcomes?",
    "overlap": "overlaps?",
    "pace": "paces?",
    "payload": "payloads?",
    "pickup": "pickup",
    "probe": "probes?",
    "producer": "producers?",
    "queue": "queues?",
    "reconciler": "reconcilers?",
    "release": "release[ds]?",
    "repeat": "repeat(s|ed)?",
    "rescue": "rescue[ds]?",
    "retry": "retr(y|ies|ied)",
    "ring": "rings?",
    "round": "rounds?",
    "schedule": "schedules?",
    "settle": "settle[ds]?",
    "signal": "signals?",
    "slot": "slots?",
    "snooze": "snooze[ds]?",
    "source": "sources?",
    "stale": "stale",
    "stall": "stall(s|ed)?",
    "standing": "standings?",
    "successor": "successors?",
    "suppressed": "suppressed",
    "sweep": "sweeps?|swept",
    "tick": "ticks?",
    "unknown": "unknown",
    "wanted": "wanted",
    "way": "ways",
    "worker": "workers?",
}
"""The terms that users may meet, and how each looks in a text."""

BANNED = (
    r"lamps?|ears?|tethers?|chronicles?|wish(es)?|lately|happenings?|endings|chores?|newcomers?|tally|"
    r"lying|lie_down|witness\w*|shelf|shelves|offices?|overtime|undrawn|gather\w*|horizons|archive_looks|steady_since"
)
"""Names that were metaphors or said nothing; what replaced them is in the glossary, or needs no
definition.
"""

PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("deploy/*.md"),
        *ROOT.glob("docs/**/*.md"),
    )
)


def texts() -> dict[str, str]:
    """Everything that a user reads, by where it stands."""
    pages = {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in PAGES
        if name != "docs/glossary.md"
    }
    settings = {
        f"setting {name}": f"{name} {field.description}"
        for name, field in Settings.fields().items()
    }
    metrics = {
        f"metric {i.name}": f"{i.name.replace('_', ' ')} {' '.join(i.labels)} {i.help}"
        for i in INSTRUMENTS
    }
    return pages | settings | metrics


def used(pattern: str, text: str) -> set[str]:
    """What of it stands in the text, as whole words."""
    return {
        found[0].lower()
        for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", text, re.IGNORECASE)
    }


@pytest.mark.parametrize("term", TERMS)
def test_a_term_that_users_meet_is_defined(term: str) -> None:
    where = [place for place, text in texts().items() if used(TERMS[term], text)]
    assert where, f"nobody uses {term}: take it off the list"
    assert term in DEFINED, f"{where[0]} uses {term}, which docs/glossary.md does not define"


def test_nothing_is_defined_that_nobody_uses() -> None:
    assert set(DEFINED) - set(TERMS) == set()


@pytest.mark.parametrize("term", DEFINED)
def test_a_definition_is_one_sentence_that_stands_alone(term: str) -> None:
    definition = DEFINED[term]
    assert definition.endswith(".")
    assert not re.search(r"[.:] +[A-Z]", definition)
    assert not re.match(r"(It|This|That|They|Those|These|The same)\b", definition)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_no_metaphor_of_old(page: str) -> None:
    assert not used(BANNED, (ROOT / page).read_text(encoding="utf-8"))
