"""Nobody who lives is declared dead, and whoever is dead soon is: the statements that run in
production, on a clock of the test's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.model.membership import LEASE, Membership, Obstacle, Rules, Seen, Story, Trouble

OLD = {"a": -100.0, "b": -97.0, "c": -93.0}
"""Three workers that have been there for long, and speak at different moments."""
Play = Callable[[Story, Rules], Awaitable[Seen]]


@pytest.fixture
async def play(database: Connection, another: Callable[[], Awaitable[Connection]]) -> Play:
    locker = await another()

    async def played(story: Story, rules: Rules = Rules()) -> Seen:  # noqa: B008  # frozen
        await database.execute("TRUNCATE hybrid_runner.workers")
        return await Membership(database, locker, story, rules).play()

    return played


def troubles(what: Obstacle, whom: str = "abc") -> Iterator[Story]:
    """Troubles of every length, with newcomers who come before, during and after."""
    for lasts in (14.0, 26.0, 31.0, 46.0, 57.0):
        for begins in (0.0, 4.5):
            ends = begins + lasts
            trouble = Trouble(what, begins, ends, frozenset(whom))
            for comes in (begins + lasts / 2, ends + 0.01):
                yield Story({**OLD, "new": comes}, ends + 50, [trouble])


def releases(what: Obstacle, whom: str) -> Iterator[Story]:
    """Troubles that end at every moment between two tries of those whom they concern."""
    for ends in range(400, 500, 3):
        trouble = Trouble(what, 0.5, ends / 10, frozenset(whom))
        # Then one of them looks while the other pauses between two tries.
        b = -99.3 if what == "rows locked" else -98.6
        starts = {"a": -100.0, "b": b, "new": ends / 10 + 0.01}
        yield Story(starts, ends / 10 + 12, [trouble])


LOCKS = {
    "the table of workers is locked": ("table locked", "abc"),
    "the table of jobs is locked": ("jobs locked", "abc"),
    "the rows of two workers are locked": ("rows locked", "bc"),
    "the row of one is locked": ("rows locked", "b"),
}


async def test_nor_whenever_a_lock_on_one_row_or_an_outage_ends(play: Play) -> None:
    for story in (*releases("rows locked", "b"), *releases("cut off", "ab")):
        seen = await play(story, Rules())
        assert not seen.wronged, story


@pytest.mark.parametrize("name", LOCKS)
async def test_nobody_who_lives_is_declared_dead_by_a_lock(play: Play, name: str) -> None:
    what, whom = LOCKS[name]
    for story in troubles(what, whom):  # type: ignore[arg-type]
        seen = await play(story, Rules())
        assert not seen.wronged, story


async def test_nor_while_all_but_newcomers_are_cut_off_from_the_server(play: Play) -> None:
    for story in troubles("cut off"):
        # Whoever listens for a whole lease while they are silent is right to declare them.
        [trouble] = story.troubles
        if story.starts["new"] >= trouble.ends or trouble.ends - trouble.begins < LEASE - 10:
            seen = await play(story, Rules())
            assert not seen.wronged, story


@pytest.mark.parametrize("dead", [["b"], ["b", "c"]], ids=len)
async def test_whoever_is_dead_is_declared_when_the_lease_ends(play: Play, dead: list[str]) -> None:
    """A whole host that dies is rescued as fast as one worker is."""
    for killed in (0.5, 3.0, 6.5, 9.5):
        seen = await play(Story(OLD, 60, kills=dict.fromkeys(dead, killed)), Rules())
        assert not seen.wronged
        assert seen.declared.keys() == set(dead)
        assert all(at <= killed + LEASE + 1 for at in seen.declared.values()), seen


async def test_a_newcomer_declares_the_dead_after_a_lease_of_its_own(play: Play) -> None:
    for comes in (12.0, 40.0, 500.0):
        story = Story({**OLD, "new": comes}, comes + 60, kills=dict.fromkeys(OLD, 10.0))
        seen = await play(story, Rules())
        assert seen.declared.keys() == set(OLD)
        assert all(at <= comes + LEASE + 8 for at in seen.declared.values()), seen


@pytest.mark.parametrize("by", [-3600.0, 3600.0])
async def test_a_clock_that_is_set_delays_a_rescue_by_a_lease_at_most(
    play: Play, by: float
) -> None:
    for stepped in (1.0, 12.0, 29.0):
        story = Story(OLD, 120, kills={"b": 4.0}, clock_steps={stepped: by})
        seen = await play(story, Rules())
        assert not seen.wronged, story
        assert seen.declared["b"] <= stepped + LEASE + 15, story


async def test_those_with_long_leases_and_short_ones_judge_each_other(play: Play) -> None:
    pauses = {"a": 40.0, "b": 10.0, "c": 2.0}
    for dead, patience in (("a", 120.0), ("b", 30.0), ("c", 20.0)):
        seen = await play(Story(OLD, 300, kills={dead: 5.0}, pauses=pauses), Rules())
        assert not seen.wronged
        assert seen.declared[dead] <= 5 + patience + 5, (dead, seen)


# --- each rule is there for a fault that is seen without it

SUSPECTED = (
    "w.suspected_at BETWEEN greatest(w.heartbeat_at, clock_timestamp() - 1.5 * w.lease)"
    " AND clock_timestamp()"
)
NEWCOMERS_JUDGE = Rules(
    (
        (
            "register_worker",
            "n.first_claim, clock_timestamp() FROM",
            "n.first_claim, '-infinity' FROM",
        ),
    )
)
THE_SILENT_JUDGE = Rules((("beat", "THEN clock_timestamp()\n", "THEN w.unbroken_since\n"),))
NO_SUSPICION = Rules(
    (
        ("ask_news", SUSPECTED, "true"),
        ("ask_news", "w.suspected_at <= clock_timestamp() - w.lease / 4", "true"),
    )
)
LONG_PAUSES = Rules(after_waiting=15.0)
THE_FUTURE_COUNTS = Rules(
    (("ask_news", "w.heartbeat_at > clock_timestamp() + interval '1 second'", "false"),)
)
SHORT_LEASES_ARE_JUDGED_AT_ONCE = Rules(
    (("ask_news", "w.lease >= $7", "$7::interval IS NOT NULL"),)
)


@pytest.mark.parametrize(
    ("rules", "what", "whom"),
    [
        pytest.param(NEWCOMERS_JUDGE, "cut off", "ab", id="newcomers judge at once"),
        pytest.param(THE_SILENT_JUDGE, "cut off", "ab", id="who was silent judges"),
        pytest.param(NO_SUSPICION, "rows locked", "b", id="nobody is suspected first"),
        pytest.param(LONG_PAUSES, "rows locked", "b", id="after waiting for a lock it pauses"),
    ],
)
async def test_without_its_rule_somebody_who_lives_is_declared_dead(
    play: Play, rules: Rules, what: Obstacle, whom: str
) -> None:
    for story in releases(what, whom):
        if (await play(story, rules)).wronged:
            return
    raise AssertionError("it makes no difference")


async def test_without_a_look_at_the_future_a_clock_that_is_set_back_delays_a_rescue(
    play: Play,
) -> None:
    story = Story(OLD, 120, kills={"b": 4.0}, clock_steps={12.0: -3600.0})
    assert not (await play(story, THE_FUTURE_COUNTS)).declared


async def test_without_knowing_its_lease_one_with_a_longer_pause_judges_a_newcomer(
    play: Play,
) -> None:
    """`a` has not asked since the others came, and was cut off with them: for a short time by its
    own lease.
    """
    trouble = Trouble("cut off", 4.2, 28.95, frozenset("acs"))
    starts = {"a": -162.8, "c": 4.0, "s": 3.9}
    story = Story(starts, 60, [trouble], pauses={"a": 40.0})
    assert not (await play(story, Rules())).wronged
    assert (await play(story, SHORT_LEASES_ARE_JUDGED_AT_ONCE)).wronged
