"""Each tick of a schedule has one job, in every order of what sessions do; and each rule is there
for an order that goes wrong without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.model.schedules import (
    BY_HAND,
    CHANGING,
    CUT_OFF,
    ENDING,
    FIRING,
    KILLED,
    PAUSING,
    Theatre,
)
from tests.model.sources.on_postgres import Step, orders
from tests.support.tick_clock import Schedules

Opened = Callable[[], Awaitable[Connection]]
Scripts = Mapping[str, Sequence[Step]]
STORIES: dict[str, Scripts] = {
    "two fire while the job ends": {"fire": FIRING, "again": FIRING, "end": ENDING},
    "one is killed while the job ends": {"fire": FIRING, "again": KILLED, "end": ENDING},
    "whoever ends the job is killed": {"fire": FIRING, "again": FIRING, "end": CUT_OFF},
    "paused while the job ends": {"fire": FIRING, "change": PAUSING, "end": ENDING},
    "changed while the job ends": {"fire": FIRING, "change": CHANGING, "end": ENDING},
    "run by hand while the job ends": {"fire": FIRING, "hand": BY_HAND, "end": ENDING},
}


async def play(
    schedules: Schedules, another: Opened, overlap: str, scripts: Scripts
) -> dict[tuple[str, ...], set[str]]:
    """The faults of each order that has any."""
    theatre = await Theatre.of(schedules, list(scripts), another)
    found = {}
    for order in orders({name: len(steps) for name, steps in scripts.items()}):
        if scripts.get("again") == scripts["fire"] and order.index("again") < order.index("fire"):
            continue  # the same with their names exchanged
        seen = await theatre.play(overlap, scripts, order)
        if faults := seen.faults(overlap):
            found[order] = faults
    return found


@pytest.fixture
async def schedules(database: Connection) -> Schedules:
    """Of this test's database."""
    return await Schedules(database).begin()


@pytest.mark.parametrize(
    ("story", "overlap"),
    [
        *(("two fire while the job ends", overlap) for overlap in ("skip", "allow")),
        *((story, overlap) for story in STORIES for overlap in ("queue", "replace")),
    ],
)
async def test_each_tick_has_one_job_in_every_order(
    schedules: Schedules, another: Opened, story: str, overlap: str
) -> None:
    assert await play(schedules, another, overlap, STORIES[story]) == {}


@pytest.mark.parametrize(
    ("function", "rule", "instead", "story", "overlap", "fault"),
    [
        (
            "free_tick",
            "FOR UPDATE SKIP LOCKED",
            "",
            "two fire while the job ends",
            "queue",
            "nobody was told",
        ),
        (
            "free_tick",
            "FOR UPDATE SKIP LOCKED",
            "FOR UPDATE",
            "two fire while the job ends",
            "queue",
            "an end had to wait",
        ),
        (
            "free_tick",
            "PERFORM hybrid_runner.notify_if_room('hybrid_runner.~ticks', '');",
            "NULL;",
            "two fire while the job ends",
            "queue",
            "nobody was told",
        ),
        (
            "fire_schedules",
            "FOR UPDATE OF s SKIP LOCKED",
            "",
            "two fire while the job ends",
            "allow",
            "a tick has two jobs",
        ),
        (
            "fire_schedules",
            "WHERE w.waiting_ticks IS NOT NULL",
            "WHERE false",
            "two fire while the job ends",
            "queue",
            "a tick waits for nothing",
        ),
        (
            "fire_schedules",
            "s.overlap = 'allow' OR NOT EXISTS",
            "true OR NOT EXISTS",
            "one is killed while the job ends",
            "queue",
            "two at a time",
        ),
        (
            "free_tick",
            "AND its.paused_at IS NULL",
            "AND its.paused_at IS NOT NULL",
            "two fire while the job ends",
            "queue",
            "nobody was told",
        ),
    ],
)
async def test_without_a_rule_some_order_goes_wrong(
    schedules: Schedules,
    another: Opened,
    function: str,
    rule: str,
    instead: str,
    story: str,
    overlap: str,
    fault: str,
) -> None:
    text = await schedules.connection.fetchval(
        "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = $1"
        " AND pronamespace = 'hybrid_runner'::regnamespace",
        function,
    )
    assert text.count(rule) == 1
    await schedules.connection.execute(text.replace(rule, instead))
    found = await play(schedules, another, overlap, STORIES[story])
    assert any(fault in faults for faults in found.values()), found
